"""The view of one server as it is: its capabilities, names, lists, notifications and order.

`face` greets its client, and each of the `requests` is `forwarded`; `calls` are those of tools,
which may be sent again or become tasks · `news` is what is told before an answer, or without any;
a client of the modern era is `listening` for it · questions are `passed` on in rounds, where server
and client are both of the era that asks so.
"""
