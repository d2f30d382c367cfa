"""Convert results to the data frames that HTA's methods return, column by column."""
