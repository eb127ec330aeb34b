"""Migration of tables from one catalog to another: plan, fence, register or copy, verify, cut over, finish or undo."""
