"""Random statements of the SQL that reports are made of: expressions, frames, sets of groups, CTEs
and scalar queries."""

AGGREGATED_NUMBERS = ("int32", "uint32")
NUMBERS = ("int32", "int64", "uint32", "uint64", "double", "decimal(18,4)")
WHOLE = ("int32", "int64", "uint32", "uint64")
TIMES = ("timestamp", "timestamp64")


def renamed(order, names):
    """The beginning of an order whose columns have new names, without columns that come twice."""
    kept = {}
    for item in order.split(", ") if order else []:
        name, _, direction = item.partition(" ")
        if name not in names:
            break
        kept.setdefault(names[name], f"{names[name]} {direction or 'NULLS LAST'}")
    return list(kept.values())


class RicherStatements:
    """Statements over table `t` with the columns of a round; the figures that two engines may round
    differently are left out."""

    def of_kind(self, kinds):
        return [c for c in self.columns if c.kind in kinds]

    def expression(self, column, prefix=""):
        """A value computed from one column or two, of which both engines have the same idea."""
        rng, name = self.rng, prefix + column.name
        like = prefix + rng.choice([c for c in self.columns if c.kind == column.kind]).name
        literal = lambda: self.typed(column, column.literal(rng))
        forms = [f"coalesce({name}, {like})", f"nullif({name}, {literal()})", f"coalesce({name}, {literal()})",
                 f"CASE WHEN {self.predicate(1, prefix)} THEN {name} END", f"greatest({name}, {like}, {literal()})",
                 f"least({name}, {like})", f"CASE {name} WHEN {literal()} THEN 1 WHEN {like} THEN 2 ELSE 0 END"]
        if column.kind == "string":
            # DataFusion does not find the common type of bytes in a column and in a literal.
            forms = [f"coalesce({name}, {like})", forms[1], forms[3]]
        if column.kind == "bool":
            forms = forms[:2] + [f"NOT {name}"]
        if column.kind in ("int32", "uint32"):
            wide = f"CAST({name} AS BIGINT)"
            forms += [f"{wide} * 3 - 7", f"{wide} % 7", f"abs({wide})", f"{wide} + CAST({like} AS BIGINT)", f"{wide} & 6"]
        if column.kind in ("int64", "uint64"):
            forms += [f"{name} % 10", f"CAST({name} AS VARCHAR)"]
        if column.kind == "double":
            forms += [f"floor({name})", f"ceil({name})", f"abs({name})", f"{name} * 2", f"-{name}", f"isnan({name})"]
        if column.kind == "decimal(18,4)":
            forms += [f"-{name}", f"abs({name})"]
        if column.kind == "utf8":
            forms += [f"upper({name})", f"length({name})", f"substr({name}, {rng.randrange(1, 4)})", f"{name} || '-' || {like}",
                      f"concat({name}, {like})", f"replace({name}, '1', 'xy')", f"reverse({name})", f"left({name}, 2)",
                      f"right({name}, 1)", f"strpos({name}, '1')", f"starts_with({name}, 'u1')", f"split_part({name}, '1', 2)",
                      f"TRY_CAST(substr({name}, 2) AS BIGINT)", f"lpad({name}, 5, '*')", f"repeat({name}, 2)", f"trim({name})"]
        if column.kind in TIMES:
            part = rng.choice(["year", "month", "day", "hour", "minute", "dow", "doy", "week", "quarter"])
            unit = rng.choice(["minute", "hour", "day", "week", "month", "quarter", "year"])
            forms += [f"extract({part} FROM {name})", f"{name} + INTERVAL '1 day'",
                      f"{name} - INTERVAL '90 minutes'", f"CAST({name} AS DATE)", f"{name} + INTERVAL '1 month'"]
        if column.kind == "timestamp":
            # DataFusion truncates the years from 1677 to 2262 only.
            forms += [f"date_trunc('{unit}', {name})"]
        if column.kind == "date":
            part = rng.choice(["year", "month", "day", "dow", "doy", "week", "quarter"])
            forms += [f"extract({part} FROM {name})", f"CAST({name} AS VARCHAR)", f"CAST({name} AS TIMESTAMP)"]
        return rng.choice(forms)

    def mixed(self, prefix=""):
        """A comparison of two types, or with a literal of another type."""
        rng = self.rng
        families = [NUMBERS, TIMES + ("date",)]
        pairs = [(a, b) for family in families for a in self.of_kind(family) for b in self.of_kind(family)
                 if a.kind != b.kind and {a.kind, b.kind} != {"double", "decimal(18,4)"}]
        op = rng.choice(["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"])
        if pairs and rng.random() < 0.6:
            a, b = rng.choice(pairs)
            return f"{prefix}{a.name} {op} {prefix}{b.name}"
        numbers, days = self.of_kind(WHOLE), self.of_kind(TIMES)
        if numbers and (rng.random() < 0.6 or not days):
            literal = rng.choice(["1.5", "2.0", "-0.5", "1e3", "4294967296", "-1", "9223372036854775807", "2147483648"])
            return f"{prefix}{rng.choice(numbers).name} {op} {literal}"
        if days:
            return f"{prefix}{rng.choice(days).name} {op} DATE '2024-01-01'"
        return self.predicate(1, prefix)

    def richer_where(self, prefix=""):
        rng = self.rng
        if rng.random() < 0.4:
            return self.where(prefix)
        column = rng.choice(self.columns)
        parts = [self.mixed(prefix), f"({self.expression(column, prefix)}) IS NOT NULL"]
        if column.kind not in ("bool", "string"):
            same = self.expression(column, prefix)
            parts.append(f"({same}) = ({same})")
        return f" WHERE {rng.choice(['', 'NOT '])}({rng.choice(parts)})"

    def computed(self):
        rng = self.rng
        shown = [f"{self.expression(rng.choice(self.columns))} AS g{i}" for i in range(rng.randrange(1, 4))]
        names = ", ".join([c.name for c in self.keys] + shown)
        form = rng.randrange(4)
        if form == 0:
            return f"SELECT DISTINCT {shown[0]} FROM t{self.richer_where()} ORDER BY g0 NULLS LAST{self.limit()}", True
        if form == 1:
            return (f"SELECT {shown[0]}, count(*) AS n, {self.aggregate(rng.choice(self.columns))} AS m FROM t{self.richer_where()} "
                    f"GROUP BY 1 ORDER BY g0 {rng.choice(['', 'DESC '])}NULLS FIRST{self.limit()}"), True
        if form == 2:
            return f"SELECT {names} FROM t{self.richer_where()} ORDER BY g0 NULLS LAST, {self.order(columns=self.keys)}{self.limit()}", True
        return f"SELECT {names} FROM t{self.richer_where()} ORDER BY {self.order()}{self.limit()}", True

    def figure(self, prefix=""):
        """An aggregate with FILTER, or of more than a column."""
        rng = self.rng
        column = rng.choice(self.columns)
        forms = [self.aggregate(column, prefix), "count(*)"]
        whole, flags = self.of_kind(AGGREGATED_NUMBERS), self.of_kind(("bool",))
        if whole:
            name = prefix + rng.choice(whole).name
            forms += [f"CAST(sum({name}) AS BIGINT)", f"avg({name})", f"bit_and({name})", f"bit_or({name})", f"bit_xor({name})",
                      f"CAST(sum(DISTINCT {name}) AS BIGINT)"]
        if flags:
            forms += [f"bool_and({prefix}{rng.choice(flags).name})", f"bool_or({prefix}{rng.choice(flags).name})"]
        decimals = self.of_kind(("decimal(18,4)",))
        if decimals:
            forms += [f"sum({prefix}{rng.choice(decimals).name})"]
        form = rng.choice(forms)
        if rng.random() < 0.35 and not form.startswith("CAST"):
            form += f" FILTER (WHERE {self.predicate(1, prefix)})"
        return form

    def sets_of_groups(self):
        rng = self.rng
        picked = self.names(rng.randrange(1, 4))
        sets = {"ROLLUP": f"ROLLUP ({', '.join(picked)})", "CUBE": f"CUBE ({', '.join(picked)})",
                "GROUPING SETS": "GROUPING SETS (" + ", ".join(
                    [f"({', '.join(rng.sample(picked, rng.randrange(0, len(picked) + 1)))})" for _ in range(2)]
                    + [f"({', '.join(picked)})"]) + ")",
                "plain": ", ".join(picked)}
        kind = rng.choice(list(sets))
        levels = [f"grouping({name})" for name in picked] if kind != "plain" else []
        figures = [f"{self.figure()} AS f{i}" for i in range(rng.randrange(1, 4))]
        shown = picked + [f"{level} AS l{i}" for i, level in enumerate(levels)] + figures
        having = rng.choice(["", "", " HAVING count(*) > 1", f" HAVING {self.figure()} IS NOT NULL"])
        order = ", ".join([f"{name} {rng.choice(['', 'DESC '])}NULLS LAST" for name in picked] + [f"l{i}" for i in range(len(levels))])
        return f"SELECT {', '.join(shown)} FROM t{self.richer_where()} GROUP BY {sets[kind]}{having} ORDER BY {order}" \
               f"{self.limit()}", True

    def framed(self):
        """Window functions over frames."""
        rng = self.rng
        total = ", ".join(f"{c.name} NULLS LAST" for c in self.keys)
        down = ", ".join(f"{c.name} DESC NULLS FIRST" for c in self.keys)
        column = rng.choice([c for c in self.columns if c.kind not in ("bool", "string")] or self.columns)
        part = rng.choice(["", f"PARTITION BY {rng.choice(self.columns).name} "])
        bounds = ["UNBOUNDED PRECEDING", "3 PRECEDING", "1 PRECEDING", "CURRENT ROW", "1 FOLLOWING", "4 FOLLOWING", "UNBOUNDED FOLLOWING"]
        start = rng.randrange(0, 6)
        end = rng.randrange(max(start, 1), 7)
        rows = f"ROWS BETWEEN {bounds[start]} AND {bounds[end]}"
        # Rows with equal values are one to these.
        peers = rng.choice(["RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
                            "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW", "GROUPS BETWEEN CURRENT ROW AND 2 FOLLOWING", ""])
        counted = [f"count({column.name})", "count(*)", f"count(*) FILTER (WHERE {self.predicate(1)})"]
        if column.kind not in ("bool", "string"):
            counted += [f"min({column.name})", f"max({column.name})"]
        calls = []
        for i in range(rng.randrange(1, 3)):
            if rng.random() < 0.35:
                lead = rng.choice([c for c in self.columns])
                name = rng.choice(["rank()", "dense_rank()", "percent_rank()", "cume_dist()"] + counted)
                frame = peers if name in counted else ""
                calls.append(f"{name} OVER ({part}ORDER BY {lead.name} {rng.choice(['', 'DESC '])}NULLS {rng.choice(['FIRST', 'LAST'])} {frame}) AS g{i}")
            else:
                picks = [f"first_value({column.name})", f"last_value({column.name})", f"nth_value({column.name}, {rng.randrange(1, 4)})"]
                name = rng.choice(counted + picks + ["row_number()", f"ntile({rng.randrange(1, 9)})"])
                frame = "" if name.startswith(("row_number", "ntile")) else rows
                calls.append(f"{name} OVER ({part}ORDER BY {rng.choice([total, down])} {frame}) AS g{i}")
        keys = ", ".join(c.name for c in self.keys)
        if rng.random() < 0.25:
            return f"SELECT {keys}, {', '.join(calls)} FROM t{self.where()} QUALIFY g0 IS NOT NULL ORDER BY {total}{self.limit()}", True
        if rng.random() < 0.25:
            source = self.limited([c.name for c in self.columns], 1000)
            return f"SELECT {keys}, {', '.join(calls)} FROM {source} x ORDER BY {total}", True
        return f"SELECT {keys}, {', '.join(calls)} FROM t{self.where()} ORDER BY {total}{self.limit()}", True

    def first_of_each(self):
        """DISTINCT ON: of each value the first row of an order."""
        rng = self.rng
        columns = self.names(rng.randrange(1, 3))
        by = ", ".join(f"{name} {rng.choice(['', 'DESC '])}NULLS {rng.choice(['FIRST', 'LAST'])}" for name in columns)
        shown = ", ".join(dict.fromkeys(columns + [c.name for c in self.keys]))
        return f"SELECT DISTINCT ON ({', '.join(columns)}) {shown} FROM t{self.where()} ORDER BY {by}, {self.order(columns=self.keys)}{self.limit()}", True

    def common_tables(self):
        """A query that is named once and read several times."""
        rng = self.rng
        group = rng.choice(self.keys)
        other = rng.choice(self.columns)
        last = self.keys[-1]
        upper = f"max({last.name})" if last.kind != "string" else "max(1)"
        grouped = (f"SELECT {group.name} AS k, count(*) AS n, count({other.name}) AS m, {upper} AS upper_k "
                   f"FROM t{self.richer_where()} GROUP BY {group.name}")
        limited = f"SELECT {group.name} AS k, count(*) AS n, 1 AS m, 2 AS upper_k FROM {self.limited([c.name for c in self.columns], 1000)} x GROUP BY 1"
        keys = ", ".join(f"t.{c.name}" for c in self.keys)
        named = rng.choice([grouped, grouped, limited])
        uses = [
            f"SELECT k, n, upper_k FROM x WHERE n = (SELECT max(n) FROM x) ORDER BY k{self.limit()}",
            f"SELECT a.k, a.n, b.m FROM x a JOIN x b ON a.k = b.k WHERE b.n >= a.m ORDER BY a.k{self.limit()}",
            f"SELECT a.k, b.n FROM x a LEFT JOIN (SELECT * FROM x WHERE n > 1) b ON a.k = b.k ORDER BY a.k{self.limit()}",
            "SELECT count(*), CAST(sum(n) AS BIGINT) FROM (SELECT * FROM x UNION ALL SELECT * FROM x WHERE m > 0)",
            f"SELECT k, n FROM x WHERE k NOT IN (SELECT k FROM x WHERE n > 1) ORDER BY k{self.limit()}",
            f"SELECT k, n, (SELECT count(*) FROM x y WHERE y.n = x.n) AS same FROM x ORDER BY k{self.limit()}",
            f"SELECT t.{other.name}, x.n FROM t JOIN x ON t.{group.name} = x.k ORDER BY {keys}{self.limit()}",
        ]
        return f"WITH x AS ({named}) {rng.choice(uses)}", True

    def scalar_queries(self):
        """A single value of a query that depends on the row, shown or compared."""
        rng = self.rng
        keys = ", ".join(f"a.{c.name}" for c in self.keys)
        order = ", ".join(f"a.{c.name} NULLS LAST" for c in self.keys)
        same = rng.choice(self.columns).name
        where = f"WHERE s.{same} = a.{same}" + (f" AND {self.predicate(1, 's.')}" if rng.random() < 0.6 else "")
        if rng.random() < 0.2:
            where = f"WHERE {self.predicate(1, 's.')}"
        column = rng.choice([c for c in self.columns if c.kind not in ("bool", "string")] or self.keys)
        side = rng.choice(["t", self.limited([c.name for c in self.columns], 1000), f"(SELECT * FROM t{self.where()})"])
        value = f"(SELECT {rng.choice(['min', 'max'])}(s.{column.name}) FROM t s {where})"
        counted = f"(SELECT {self.figure('s.')} FROM t s {where})"
        form = rng.randrange(4)
        if form == 0:
            return f"SELECT {keys}, {counted} AS n FROM {side} a ORDER BY {order}{self.limit()}", True
        if form == 1:
            return f"SELECT {keys}, {value} AS v FROM {side} a{self.where('a.')} ORDER BY {order}{self.limit()}", True
        if form == 2:
            other = f" OR {self.predicate(1, 'a.')}" if rng.random() < 0.5 else ""
            return (f"SELECT {keys} FROM {side} a WHERE a.{column.name} {rng.choice(['=', '<', '>=', '<>'])} {value}{other} "
                    f"ORDER BY {order}{self.limit()}"), True
        return (f"SELECT {keys} FROM {side} a WHERE (SELECT count(*) FROM t s {where}) {rng.choice(['= 0', '> 1', '<= 2'])} "
                f"ORDER BY {order}{self.limit()}"), True

    def by_using(self):
        """Joins with USING, whose columns stand for both sides."""
        rng = self.rng
        names = [c.name for c in self.keys]
        keys = ", ".join(names)
        kind = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        left, right = (f"(SELECT * FROM t{self.where()})" for _ in range(2))
        other = rng.choice(self.columns).name
        pick = rng.choice(names)
        joined = f"{left} a {kind} {right} b USING ({keys})"
        if rng.random() < 0.3:
            least = f", min(b.{names[-1]})" if self.keys[-1].kind != "string" else ""
            return f"SELECT count(*), count({pick}){least} FROM {joined}", True
        order = ", ".join(f"{name} NULLS LAST" for name in names)
        if rng.random() < 0.2:
            return (f"SELECT * FROM (SELECT {keys} FROM {left} z) a {kind} {right} b USING ({keys}) "
                    f"ORDER BY {order}{self.limit()}"), True
        where = rng.choice(["", f" WHERE {pick} IS NOT NULL", f" WHERE a.{other} IS NULL"])
        return f"SELECT {keys}, a.{other} AS x, b.{other} AS y FROM {joined}{where} ORDER BY {order}{self.limit()}", True

    def nested_sets(self):
        """Set operations within others."""
        rng = self.rng
        columns = self.names(rng.randrange(1, 3))
        leaf = lambda: f"SELECT {', '.join(columns)} FROM {rng.choice(['t', self.limited([c.name for c in self.columns], 1000)])} x{self.where()}"
        ops = ["UNION ALL", "UNION", "EXCEPT", "INTERSECT"]
        inner = f"({leaf()}) {rng.choice(ops)} ({leaf()})"
        whole = f"({inner}) {rng.choice(ops)} ({leaf()})" if rng.random() < 0.6 else inner
        order = ", ".join(f"{name} NULLS LAST" for name in columns)
        if rng.random() < 0.4:
            return f"SELECT count(*) FROM ({whole})", True
        return f"SELECT * FROM ({whole}) ORDER BY {order}{self.limit()}", True

    def relation(self, depth):
        """A query of queries, its columns as pairs of name and kind, and orders in which an engine
        may hold its rows.

        No row depends on the order of equal ones.
        """
        rng = self.rng
        if depth == 0 or rng.random() < 0.15:
            columns = list(dict.fromkeys(rng.sample(self.keys, rng.randrange(1, len(self.keys) + 1))
                                         + rng.sample(self.columns, min(len(self.columns), rng.randrange(1, 4)))))
            rng.shuffle(columns)
            shown = ", ".join(f"{c.name} AS c{i}" for i, c in enumerate(columns))
            order = self.order(columns=rng.choice([self.columns, self.keys]))
            source = f"(SELECT * FROM t{self.where()} ORDER BY {order} LIMIT {rng.choice([10, 100, 100])})"
            return (f"(SELECT {shown} FROM {source} x)", [(f"c{i}", c.kind) for i, c in enumerate(columns)],
                    [renamed(order, {c.name: f"c{i}" for i, c in enumerate(columns)})])
        form = rng.choice(["join", "join", "join", "window", "group", "distinct", "filter", "union"])
        left, columns, orders = self.relation(depth - 1)
        names, kinds = [name for name, _ in columns], dict(columns)
        if form == "join":
            return self.joined_relations(depth, (left, columns, orders))
        by = rng.sample(names, rng.randrange(1, min(len(names), 3) + 1))
        if form == "window":
            order = f"{rng.choice(names)} {rng.choice(['', 'DESC '])}NULLS {rng.choice(['FIRST', 'LAST'])}"
            call, sorts = rng.choice([
                (f"rank() OVER (PARTITION BY {', '.join(by)} ORDER BY {order})", by + [order]),
                (f"count(*) OVER (PARTITION BY {', '.join(by)})", by), (f"dense_rank() OVER (ORDER BY {order})", [order]),
                (f"count({rng.choice(names)}) OVER (PARTITION BY {by[0]} ORDER BY {order})", by[:1] + [order])])
            return (f"(SELECT {', '.join(names)}, CAST({call} AS BIGINT) AS w{depth} FROM {left} x)",
                    columns + [(f"w{depth}", "int64")], orders + [renamed(", ".join(sorts), {name: name for name in names})])
        if form == "group":
            shown = ", ".join(f"{name} AS c{i}" for i, name in enumerate(by))
            return (f"(SELECT {shown}, CAST(count(*) AS BIGINT) AS n FROM {left} x GROUP BY {', '.join(by)})",
                    [(f"c{i}", kinds[name]) for i, name in enumerate(by)] + [("n", "int64")],
                    [renamed(", ".join(order), {name: f"c{i}" for i, name in enumerate(by)}) for order in orders])
        if form == "distinct":
            return (f"(SELECT DISTINCT {', '.join(by)} FROM {left} x)", [(name, kinds[name]) for name in by],
                    [renamed(", ".join(order), {name: name for name in by}) for order in orders])
        if form == "filter":
            same = [(a, b) for a in names for b in names if a < b and kinds[a] == kinds[b]]
            tests = [f"{rng.choice(names)} IS {rng.choice(['', 'NOT '])}NULL"] + [f"{a} {rng.choice(['=', '<='])} {b}" for a, b in same]
            return f"(SELECT * FROM {left} x WHERE {rng.choice(tests)})", columns, orders
        shown = ", ".join(names)
        return f"(SELECT {shown} FROM {left} x UNION {rng.choice(['', 'ALL '])}SELECT {shown} FROM {left} y)", columns, orders

    def joined_relations(self, depth, left):
        rng = self.rng
        # One side is small, as a value that many rows of both have makes millions of pairs.
        sides = [left, self.relation(0)]
        if depth == 1 and rng.random() < 0.4:
            sides[0] = ("t", [(c.name, c.kind) for c in self.columns], [[f"{c.name} NULLS LAST" for c in self.keys]])
        rng.shuffle(sides)
        pairs = [(a, b) for a, kind in sides[0][1] for b, other in sides[1][1] if kind == other != "bool"]
        if not pairs:
            return left
        on = " AND ".join(f"a.{a} = b.{b}" for a, b in rng.sample(pairs, min(len(pairs), rng.choice([1, 1, 2]))))
        picked = [(prefix + name, kind) for prefix, side in zip(["a.", "b."], sides)
                  for name, kind in rng.sample(side[1], rng.randrange(1, min(len(side[1]), 3) + 1))]
        rng.shuffle(picked)
        shown = ", ".join(f"{name} AS c{i}" for i, (name, _) in enumerate(picked))
        join = rng.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        places = [{name[2:]: f"c{i}" for i, (name, _) in enumerate(picked) if name.startswith(prefix)} for prefix in ("a.", "b.")]
        first, second = ([renamed(", ".join(order), names) for order in side[2]] for side, names in zip(sides, places))
        both = [one[:rng.randrange(len(one) + 1)] + other for a, b in ((first, second), (second, first)) for one in a for other in b]
        return (f"(SELECT {shown} FROM {sides[0][0]} a {join} {sides[1][0]} b ON {on})",
                [(f"c{i}", kind) for i, (_, kind) in enumerate(picked)], first + second + both)

    def composed(self):
        """Joins, windows, groups and unions within each other, of which only the columns that are
        sorted by are shown."""
        rng = self.rng
        source, columns, orders = self.relation(rng.choice([1, 1, 2]))
        some = rng.sample(columns, rng.randrange(1, min(len(columns), 3) + 1))
        order = [f"{name} {rng.choice(['', '', 'DESC '])}NULLS {rng.choice(['LAST', 'LAST', 'FIRST'])}" for name, _ in some]
        orders = [order for order in orders if order]
        if orders and rng.random() < 0.7:
            order = rng.choice(orders)
            order = order[:rng.randrange(1, len(order) + 1)]
        by = [item.split(" ")[0] for item in order]
        shown, order = ", ".join(by), ", ".join(order)
        form = rng.randrange(4)
        if form == 0:
            return f"SELECT {shown}, count(*) AS many FROM {source} x GROUP BY {shown} ORDER BY {order}{self.limit()}", True
        if form == 1:
            call = rng.choice([f"rank() OVER (PARTITION BY {by[0]} ORDER BY {order})", f"count(*) OVER (PARTITION BY {shown})"])
            return f"SELECT {shown}, {call} AS w FROM {source} x ORDER BY {order}{self.limit()}", True
        distinct = "DISTINCT " if form == 2 else ""
        return f"SELECT {distinct}{shown} FROM {source} x ORDER BY {order}{self.limit()}", True

    def richer(self):
        return self.rng.choice([self.computed, self.computed, self.sets_of_groups, self.framed, self.framed, self.first_of_each,
                                self.common_tables, self.scalar_queries, self.by_using, self.nested_sets,
                                self.composed, self.composed])()
