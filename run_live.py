"""Start the live face swap: ``python run_live.py --source me.png``. The same as ``doppelcam live``."""

from realtime.cli import main_live

if __name__ == "__main__":
    main_live()
