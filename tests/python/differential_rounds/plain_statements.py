"""Random statements over one table, or over limited parts of it."""


class PlainStatements:
    """Picks a shape of statement; the shapes that take neither joins of keys nor subqueries."""

    def statement(self):
        rng = self.rng
        if rng.random() < self.options.richer:
            return self.richer()
        kind = rng.randrange(18)
        if kind >= 13:
            return [self.joined, self.joined, self.with_subqueries, self.with_subqueries, self.shifted][kind - 13]()
        if kind <= 2:
            return f"SELECT {', '.join(self.names())} FROM t{self.where()} ORDER BY {self.order()}{self.limit()}", True
        if kind == 3:
            key = self.keys[0].name
            return f"SELECT {key} FROM t{self.where()} ORDER BY {key}{self.limit()}", True
        if kind == 4:
            # Engines look for extremes alone otherwise than beside a count.
            if rng.random() < 0.5:
                figures = [self.extreme() for _ in range(rng.randrange(1, 4))]
            else:
                figures = ["count(*)"] + [self.aggregate(rng.choice(self.columns)) for _ in range(3)]
            return f"SELECT {', '.join(f'{figure} AS g{i}' for i, figure in enumerate(figures))} FROM t{self.where()}", True
        if kind == 5:
            group = self.names(rng.randrange(1, 3))
            ordered = ", ".join(f"{name} NULLS LAST" for name in group)
            having = rng.choice(["", " HAVING count(*) > 1"])
            return (f"SELECT {', '.join(group)}, count(*), {self.aggregate(rng.choice(self.columns))} AS g FROM t{self.where()} "
                    f"GROUP BY {', '.join(group)}{having} ORDER BY {ordered}{self.limit()}"), True
        if kind == 6:
            key = rng.choice(self.keys).name
            columns = ", ".join(f"b.{name}" for name in self.names(1)) + "".join(f", a.{c.name}" for c in self.keys)
            outer = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN"])
            # A key of few values joins each row with many: with large sides the rows are only
            # counted.
            counted = rng.random() < 0.5
            most = 1000 if counted else 100
            join = (f"{self.limited([c.name for c in self.keys], most)} a {outer} "
                    f"{self.limited([c.name for c in self.columns], most)} b ON a.{key} = b.{key}")
            return f"SELECT {'count(*), count(a.' + key + '), count(b.' + key + ')' if counted else columns} FROM {join}", False
        if kind == 7:
            column = rng.choice(self.columns).name
            negated = rng.choice(["", "NOT "]) if column in {c.name for c in self.keys} else ""
            return (f"SELECT {', '.join(self.names())} FROM t WHERE {column} {negated}IN {self.limited([column])} "
                    f"ORDER BY {self.order()}{self.limit()}"), True
        if kind == 8:
            columns = self.names(rng.randrange(1, 3))
            op = rng.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
            return f"SELECT * FROM {self.limited(columns)} {op} SELECT * FROM {self.limited(columns)}", False
        if kind == 9:
            part = rng.choice(self.columns).name
            window = rng.choice(["row_number()", "rank()", "dense_rank()", "count(*)"])
            return (f"SELECT * FROM (SELECT {', '.join(c.name for c in self.keys)}, {window} OVER "
                    f"(PARTITION BY {part} ORDER BY {self.order(columns=self.keys)}) AS n FROM t{self.where()}) "
                    f"WHERE n <= {rng.choice([1, 2, 5])}{''}"), False
        if kind == 10:
            columns = self.names(rng.randrange(1, 3))
            ordered = ", ".join(f"{name} {rng.choice(['', 'DESC '])}NULLS {rng.choice(['FIRST', 'LAST'])}" for name in columns)
            return f"SELECT DISTINCT {', '.join(columns)} FROM t{self.where()} ORDER BY {ordered}{self.limit()}", True
        if kind == 11:
            shown = [f"{self.predicate()} AS p{i}" for i in range(rng.randrange(1, 4))]
            names = ", ".join([c.name for c in self.keys] + shown)
            if rng.random() < 0.3:
                return f"SELECT * FROM (SELECT {names} FROM t) WHERE p0 ORDER BY {self.order(columns=self.keys)}{self.limit()}", True
            return f"SELECT {names} FROM t{self.where()} ORDER BY {self.order()}{self.limit()}", True
        column = rng.choice([c for c in self.columns if c.kind not in ("bool",)])
        inner = [c.name for c in self.columns]
        return f"SELECT count(*), min({column.name}), max({column.name}) FROM {self.limited(inner)} x{self.where()}" \
            if column.kind != "string" else f"SELECT count(*), count({column.name}) FROM {self.limited(inner)} x", True

    def shifted(self):
        """LEAD and LAG, with and without NULLs, and casts that lose something."""
        rng = self.rng
        keys = ", ".join(c.name for c in self.keys)
        order = ", ".join(f"{c.name} NULLS LAST" for c in self.keys)
        down = ", ".join(f"{c.name} DESC NULLS FIRST" for c in self.keys)
        column = rng.choice(self.columns)
        call = f"{rng.choice(['lead', 'lag'])}({column.name}, {rng.choice([-2, 0, 1, 2, 3])}"
        nulls = rng.random() < 0.5
        over = f" OVER ({rng.choice(['', f'PARTITION BY {rng.choice(self.columns).name} '])}ORDER BY {rng.choice([order, down])})"
        value = f"{call}#IGNORE NULLS#){over}" if nulls else f"{call}){over}"
        kinds = {"timestamp": ["TIME", "DATE"], "decimal(18,4)": ["DECIMAL(16, 2)"], "uint32": ["SMALLINT"],
                 "int64": ["SMALLINT"], "int32": ["SMALLINT", "BOOLEAN"], "uint64": ["BIGINT"]}
        casts = [(c.name, to) for c in self.columns for to in kinds.get(c.kind, [])]
        where = self.where()
        if casts and rng.random() < 0.6:
            name, to = rng.choice(casts)
            bound = {"TIME": "TIME '00:00:30'", "DATE": "DATE '2021-06-01'", "BOOLEAN": "true"}.get(to, str(rng.choice([0, 1, 7, 250])))
            test = f"TRY_CAST({name} AS {to}) {rng.choice(['<', '>=', '=', '<>', 'IS DISTINCT FROM'])} {bound}"
            where = f" WHERE {rng.choice(['', 'NOT '])}({test})"
            if rng.random() < 0.5:
                return f"SELECT count(*) FROM (SELECT *, {test} AS p FROM t) WHERE p IS {rng.choice(['', 'NOT '])}NULL OR p", True
        return f"SELECT {keys}, {value} AS g FROM t{where} ORDER BY {order}{self.limit()}", True
