"""`mqreplay bundle`: a recording as one file to share, with names, addresses and keys replaced if asked."""
