"""Start the live face swap: ``python run_live.py --source me.png``. The same as ``doppelcam live``."""

import sys

if __name__ == "__main__":
    try:
        from realtime.cli import main_live
    except ModuleNotFoundError as error:
        sys.stderr.write(f"error: this Python lacks the package {error.name}\n")
        sys.stderr.write("try: .venv/bin/python run_live.py (README.md says how to make .venv)\n")
        sys.exit(2)
    main_live()
