"""Random statements with IN and EXISTS above joins of the tables of TPC-H."""

# Two sides of a join, with the columns that join them.
JOINS = [
    ("customer", "c_custkey", "orders", "o_custkey"),
    ("orders", "o_orderkey", "lineitem", "l_orderkey"),
    ("supplier", "s_suppkey", "lineitem", "l_suppkey"),
    ("part", "p_partkey", "partsupp", "ps_partkey"),
    ("supplier", "s_nationkey", "nation", "n_nationkey"),
    ("customer", "c_nationkey", "nation", "n_nationkey"),
]
# A column of each table that a subquery selects by, and a condition.
KEYS = {
    "customer": (["c_custkey", "c_nationkey"], "c_acctbal > 5000"),
    "orders": (["o_orderkey", "o_custkey"], "o_totalprice > 300000"),
    "lineitem": (["l_orderkey", "l_suppkey", "l_partkey"], "l_quantity > 45"),
    "supplier": (["s_suppkey", "s_nationkey"], "s_acctbal > 5000"),
    "part": (["p_partkey"], "p_size > 40"),
    "partsupp": (["ps_partkey", "ps_suppkey"], "ps_availqty > 9000"),
    "nation": (["n_nationkey", "n_regionkey"], "n_nationkey > 12"),
}
# Subqueries by the kind of key that they return: some with and some without a grouping.
SUBQUERIES = {
    "custkey": [
        "SELECT o_custkey AS k FROM orders GROUP BY o_custkey HAVING count(*) > 25",
        "SELECT c_custkey AS k FROM customer WHERE c_acctbal < 0",
    ],
    "nationkey": [
        "SELECT n_nationkey AS k FROM nation WHERE n_regionkey = 2",
        "SELECT c_nationkey AS k FROM customer GROUP BY c_nationkey HAVING max(c_acctbal) > 9900",
        "SELECT nullif(n_nationkey, 3) AS k FROM nation",
    ],
    "orderkey": [
        "SELECT l_orderkey AS k FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 250",
        "SELECT o_orderkey AS k FROM orders WHERE o_orderpriority = '1-URGENT'",
    ],
    "suppkey": [
        "SELECT ps_suppkey AS k FROM partsupp GROUP BY ps_suppkey HAVING min(ps_supplycost) > 30",
        "SELECT s_suppkey AS k FROM supplier WHERE s_acctbal > 9000",
    ],
    "partkey": [
        "SELECT p_partkey AS k FROM part WHERE p_size = 15",
        "SELECT l_partkey AS k FROM lineitem GROUP BY l_partkey HAVING count(*) > 35",
    ],
    "regionkey": ["SELECT r_regionkey AS k FROM region WHERE r_name < 'B'"],
}


def statement(random):
    """A statement that returns one row: a count, and sums of the keys of both sides."""
    one, one_key, other, other_key = random.choice(JOINS)
    kind = random.choice(["JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    on = f"{one_key} = {other_key}"
    if random.random() < 0.3:
        on += f" AND {KEYS[other][1]}"
    side = random.choice([one, other])
    key = random.choice(KEYS[side][0])
    subquery = random.choice(SUBQUERIES[key.split("_")[1]])
    form = random.choice(["IN", "NOT IN", "EXISTS", "NOT EXISTS"])
    where = f"{key} {form} ({subquery})"
    if form.endswith("EXISTS"):
        where = f"{form} (SELECT 1 FROM ({subquery}) q WHERE q.k = {key})"
    if random.random() < 0.3:
        where += f" AND {KEYS[random.choice([one, other])][1]}"
    return f"SELECT count(*) AS n, sum({one_key}), sum({other_key}) FROM {one} {kind} {other} ON {on} WHERE {where}"
