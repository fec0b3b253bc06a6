"""``python -m keyhole`` is the keyhole command."""

from keyhole.cli.main import main

if __name__ == "__main__":
    main()
