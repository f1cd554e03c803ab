"""The facts about Lightning's bugs: which releases have them, which patches fix them, and what upstream has fixed.

The commands, the generated pages and the scripts read from here. The engine imports only :mod:`unpatched` and
:mod:`removed`, which import nothing but records.
"""
