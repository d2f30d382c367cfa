"""What a program or an agent asks a store, over the Model Context Protocol: few rows, plain JSON, what to ask next."""
