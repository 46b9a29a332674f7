"""Commands for people who change EdgeLoom: `./loom docs` writes the generated parts of the documents."""
