"""What Delta makes of the rows of a table, and whether two tables are the same."""

import pyarrow as pa

DELTA_TYPES = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.timestamp("ms"): pa.timestamp("us"),
    pa.duration("us"): pa.int64(),
    pa.binary(16): pa.binary(),
}


def plain(table):
    """The table with one Arrow type where readers choose among several.

    These are views, large or small offsets, dictionaries.
    """
    fields = []
    for field in table.schema:
        kind = field.type
        if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
            kind = pa.string()
        elif pa.types.is_binary_view(kind) or pa.types.is_large_binary(kind):
            kind = pa.binary()
        fields.append(pa.field(field.name, kind))
    return table.cast(pa.schema(fields))


def expected(rows):
    """The rows of evenkeel in the types of Delta. The casts are exact or fail."""
    rows = plain(rows)
    fields = [pa.field(field.name, DELTA_TYPES.get(field.type, field.type)) for field in rows.schema]
    return rows.cast(pa.schema(fields))


def same(name, found, wanted, key="k"):
    found, wanted = plain(found), plain(wanted)
    order = [(column, "ascending") for column in ([key] if isinstance(key, str) else key)]
    found, wanted = found.sort_by(order).combine_chunks(), wanted.sort_by(order).combine_chunks()
    assert found.schema.equals(wanted.schema), f"{name}: {found.schema}\ninstead of\n{wanted.schema}"
    assert found.num_rows == wanted.num_rows, f"{name}: {found.num_rows} rows instead of {wanted.num_rows}"
    for column in wanted.column_names:
        if not found[column].equals(wanted[column]):
            pairs = zip(found[column].to_pylist(), wanted[column].to_pylist())
            wrong = [pair for pair in pairs if pair[0] != pair[1]]
            raise AssertionError(f"{name}: column {column}: (found, wanted) {wrong[:3]}")
