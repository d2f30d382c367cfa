"""How the methods of HTA's names are answered."""
