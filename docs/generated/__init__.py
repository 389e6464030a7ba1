"""What pages have from the code, one module for each kind; `generate.py` puts it there."""
