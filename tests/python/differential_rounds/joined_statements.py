"""Random statements with joins and subqueries."""


class JoinedStatements:
    """Joins on the primary key, and conditions that are subqueries."""

    def compared(self, prefixes):
        """A condition on one or two of the joined tables, which all have the same columns."""
        rng = self.rng
        first, second = rng.choice(prefixes), rng.choice(prefixes)
        if rng.random() < 0.3:
            return self.predicate(1, first)
        column = rng.choice(self.columns)
        other = rng.choice([c for c in self.columns if c.kind == column.kind])
        left, right = first + column.name, second + other.name
        form = rng.choice(["{0} IS NULL OR {0} {2} {1}", "{0} {2} {1}", "{0} IS DISTINCT FROM {1}",
                           "{1} IS NULL OR {0} IS NULL", "coalesce({0}, {1}) {2} {1}"])
        return form.format(left, right, rng.choice(["<", ">=", "<>"]))

    def joined(self):
        """Two or three tables joined on the primary key or, if one has few rows, on part of it."""
        rng = self.rng
        names = [c.name for c in self.columns]
        tables = ["a.", "b.", "c."][:rng.randrange(2, 4)]
        sides = [rng.choice(["t", f"(SELECT * FROM t{self.where()})", self.limited(names, 100)]) for _ in tables]
        source = f"{sides[0]} a"
        for i in range(1, len(tables)):
            kind = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
            left = rng.choice(tables[:i])
            columns = self.keys if not sides[i].endswith(")") or "LIMIT" not in sides[i] else self.keys[:1]
            on = " AND ".join(f"{left}{c.name} = {tables[i]}{c.name}" for c in columns)
            if kind != "FULL JOIN" and rng.random() < 0.25:
                on += f" AND ({self.compared([left, tables[i]])})"
            source += f" {kind} {sides[i]} {tables[i][0]} ON {on}"
        where = "".join(f" {word} ({self.compared(tables)})" for word in ["WHERE", "AND"][:rng.randrange(3)])
        if rng.random() < 0.5:
            figures = [self.aggregate(rng.choice(self.columns), rng.choice(tables)) for _ in range(3)]
            return f"SELECT count(*), {', '.join(f'{figure} AS g{i}' for i, figure in enumerate(figures))} FROM {source}{where}", True
        picked = [table + c.name for table in tables for c in self.keys]
        picked += [rng.choice(tables) + name for name in self.names(1)]
        rng.shuffle(picked)
        shown = ", ".join(f"{name} AS g{i}" for i, name in enumerate(picked))
        order = ", ".join(f"{name}{rng.choice(['', ' DESC'])} NULLS LAST" for name in picked)
        return f"SELECT {shown} FROM {source}{where} ORDER BY {order}{self.limit()}", True

    def subquery(self, column, returns_rows):
        """A query of one column of the kind of the given one, or of rows; it may use table a."""
        rng = self.rng
        item = rng.choice([c for c in self.columns if c.kind == column.kind]).name
        same = rng.choice(self.columns).name
        where = f"WHERE {rng.choice(['true', f's.{same} = a.{same}'])} AND {self.predicate(1, 's.')}"
        forms = [f"SELECT s.{item} FROM t s {where}"] * 4 + [f"SELECT DISTINCT s.{item} FROM t s {where}"]
        if column.kind not in ("bool", "string", "double"):
            forms.append(f"SELECT max(s.{item}) FROM t s {where}")
        if returns_rows:
            forms += [f"SELECT count(*) FROM t s {where}", f"SELECT 1 FROM t s {where} OFFSET {rng.randrange(3)}",
                      f"SELECT count(*) FROM t s {where} HAVING count(*) > {rng.randrange(3)}",
                      f"SELECT 1 FROM t s {where} GROUP BY ROLLUP (s.{item})"]
        return rng.choice(forms)

    def condition(self, depth=0):
        rng = self.rng
        roll = rng.random()
        if depth < 2 and roll < 0.4:
            return f"({self.condition(depth + 1)} {rng.choice(['AND', 'OR', 'OR'])} {self.condition(depth + 1)})"
        if depth < 2 and roll < 0.6:
            wrapper = rng.choice(["NOT ({})", "({}) IS NULL", "({}) IS NOT TRUE", "coalesce({}, true)"])
            return wrapper.format(self.condition(depth + 1))
        column = rng.choice(self.columns)
        if roll < 0.8:
            value = f"a.{column.name}" if rng.random() < 0.8 else self.typed(column, column.literal(rng))
            return f"{value} {rng.choice(['', 'NOT '])}IN ({self.subquery(column, False)})"
        if roll < 0.9:
            return f"{rng.choice(['', 'NOT '])}EXISTS ({self.subquery(column, True)})"
        return self.predicate(1, "a.")

    def with_subqueries(self):
        keys = ", ".join(f"a.{c.name}" for c in self.keys)
        order = ", ".join(f"a.{c.name} NULLS LAST" for c in self.keys)
        side = self.rng.choice(["t", f"(SELECT * FROM t{self.where()})"])
        return f"SELECT {keys} FROM {side} a WHERE {self.condition()} ORDER BY {order}{self.limit()}", True
