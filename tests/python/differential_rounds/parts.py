"""Parts of random statements: conditions, orders, limits, names, aggregates."""


class StatementParts:
    """Parts of statements over table `t` with the columns of a round."""

    def predicate(self, depth=0, prefix=""):
        rng = self.rng
        roll = rng.random()
        if depth < 2 and roll < 0.25:
            op = rng.choice(["AND", "OR"])
            return f"({self.predicate(depth + 1, prefix)} {op} {self.predicate(depth + 1, prefix)})"
        if depth < 2 and roll < 0.35:
            return f"NOT ({self.predicate(depth + 1, prefix)})"
        column = rng.choice(self.keys) if rng.random() < 0.4 else rng.choice(self.columns)
        name, literal = prefix + column.name, lambda: self.typed(column, column.literal(rng))
        roll = rng.random()
        if column.kind == "bool":
            return rng.choice([name, f"{name} IS NULL", f"{name} = {literal()}", f"{name} IS NOT TRUE"])
        if roll < 0.1:
            return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
        if roll < 0.13:
            return f"{name} IS {rng.choice(['', 'NOT '])}DISTINCT FROM {literal()}"
        if depth < 2 and roll < 0.16:
            inner = [self.predicate(depth + 1, prefix) for _ in range(3)]
            return f"CASE WHEN {inner[0]} THEN {inner[1]} ELSE {inner[2]} END"
        if roll < 0.27:
            return f"{name} {rng.choice(['', 'NOT '])}BETWEEN {literal()} AND {literal()}"
        if roll < 0.44:
            values = ", ".join("NULL" if rng.random() < 0.04 else literal() for _ in range(rng.randrange(1, 6)))
            return f"{name} {rng.choice(['', 'NOT '])}IN ({values})"
        if column.kind == "utf8" and roll < 0.54:
            return f"{name} {rng.choice(['', 'NOT '])}LIKE {rng.choice(['$u1%$', '$%3$', '$u_$', '$%$'])}".replace("$", "'")
        other = rng.choice([c for c in self.columns if c.kind == column.kind])
        right = prefix + other.name if roll > 0.92 else literal()
        return f"{name} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {right}"

    @staticmethod
    def typed(column, literal):
        """A literal of bytes: the one thing that both write differently."""
        return f"@{literal}@" if column.kind == "string" else literal

    def order(self, prefix="", columns=None):
        """A total order; both engines are told where NULLs go."""
        rng = self.rng
        columns = columns or self.columns
        lead = rng.sample(columns, min(len(columns), rng.randrange(0, 3))) if rng.random() < 0.6 else []
        whole = lead + [c for c in self.keys if c not in lead]
        down = rng.random() < 0.25
        def direction(column):
            if column in lead:
                return rng.choice(["", " DESC"]) + rng.choice([" NULLS FIRST", " NULLS LAST"])
            return (" DESC" if down else "") + " NULLS LAST"
        return ", ".join(f"{prefix}{c.name}{direction(c)}" for c in whole)

    def limit(self, most=8192):
        rng = self.rng
        text = f" LIMIT {rng.choice([n for n in (0, 1, 2, 5, 10, 100, 1000, 8192) if n <= most])}"
        return text + (f" OFFSET {rng.choice([1, 3, 100, 2000])}" if rng.random() < 0.3 else "")

    def names(self, count=None, columns=None):
        columns = columns or self.columns
        count = min(len(columns), count or self.rng.randrange(1, len(columns) + 1))
        picked = self.rng.sample(columns, count)
        return [c.name for c in picked]

    def where(self, prefix=""):
        return f" WHERE {self.predicate(0, prefix)}" if self.rng.random() < 0.7 else ""

    def limited(self, columns, most=8192):
        return f"(SELECT {', '.join(columns)} FROM t{self.where()} ORDER BY {self.order()}{self.limit(most)})"

    def extreme(self):
        """The least or greatest value of a column, or of an expression."""
        rng = self.rng
        column = rng.choice([c for c in self.columns if c.kind not in ("bool", "string")] or self.keys)
        other = rng.choice([c for c in self.columns if c.kind == column.kind])
        value = rng.choice([column.name, column.name, f"coalesce({column.name}, {other.name})",
                            f"CASE WHEN {self.predicate(1)} THEN {column.name} END",
                            f"nullif({column.name}, {self.typed(column, column.literal(rng))})"])
        return f"{rng.choice(['min', 'max'])}({value})"

    def aggregate(self, column, prefix=""):
        name, kind = prefix + column.name, column.kind
        choices = [f"count({name})", f"count(DISTINCT {name})"]
        if kind not in ("bool", "string"):
            choices += [f"min({name})", f"max({name})"]
        if kind in ("int32", "uint32"):
            choices += [f"CAST(sum({name}) AS BIGINT)"]
        return self.rng.choice(choices)
