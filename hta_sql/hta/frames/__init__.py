"""The frames that HTA's names return, column by column."""
