"""What replaces a face: the ``Swapper`` contract and the table of families; knows no model."""
