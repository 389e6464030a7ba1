"""What all pages have in common: `pages` routes, forms and errors · `rendering` templates ·
`assets` styles and scripts · `requests` who asks, and how it is answered · `live` telling browsers
that something has changed · `names` of things in URLs.
"""
