"""What `make docs` needs beside MkDocs: links, equations, the gallery, notebooks, API."""
