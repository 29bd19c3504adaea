"""What a user's X becomes: tables, images, numbers or arrays by name as rows of a network."""
