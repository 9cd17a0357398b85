"""Makes the Parquet files of this folder: python record.py (pyarrow 25)."""
import os

import pyarrow as pa
import pyarrow.parquet as pq

HERE = os.path.dirname(os.path.abspath(__file__))


def text(row):
    return "" if row % 17 == 3 else "row %d: the valve opens, Gr\u00f6\u00dfe \u4e16\u754c, %s.\n" % (row, "water flows " * (row % 5))


def write(name, table, **options):
    pq.write_table(table, os.path.join(HERE, name), **options)


texts = [text(row) for row in range(300)]
table = pa.table({"id": list(range(300)), "text": texts, "source": ["a" if row % 2 else "b" for row in range(300)],
                  "meta": [{"title": "t%d" % row} for row in range(300)], "tags": [["x", "y"][: row % 3] for row in range(300)]})
write("snappy.parquet", table, row_group_size=110)
write("zstd.parquet", table, compression="zstd", use_dictionary=False)
write("gzip.parquet", table, compression="gzip", data_page_size=500, data_page_version="2.0")
write("plain.parquet", table, compression="none", use_dictionary=False, row_group_size=40)
write("nulls.parquet", pa.table({"text": ["one", None, "three"]}))
with open(os.path.join(HERE, "texts.jsonl"), "w") as out:
    import json
    for value in texts:
        out.write(json.dumps({"text": value}) + "\n")
