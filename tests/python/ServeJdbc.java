import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.List;

/** Uses `evenkeel serve` by JDBC; the tables are those of serve_checks/fixture.py. */
public class ServeJdbc {
    static void check(Object found, Object expected) {
        if (!expected.equals(found)) {
            throw new AssertionError("found " + found + ", expected " + expected);
        }
    }

    static List<String> column(ResultSet rows, String name) throws SQLException {
        List<String> found = new ArrayList<>();
        while (rows.next()) {
            found.add(rows.getString(name));
        }
        return found;
    }

    public static void main(String[] arguments) throws Exception {
        Connection connection = DriverManager.getConnection(arguments[0]);
        DatabaseMetaData metadata = connection.getMetaData();
        check(metadata.getDatabaseProductName(), "PostgreSQL");
        check(column(metadata.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME"), List.of("events", "users"));
        check(column(metadata.getColumns(null, "public", "events", "%"), "TYPE_NAME"), List.of("numeric", "timestamp", "text", "text", "numeric"));
        check(column(metadata.getPrimaryKeys(null, "public", "events"), "COLUMN_NAME"), List.of("at", "user", "id"));
        check(column(metadata.getIndexInfo(null, "public", "events", false, true), "COLUMN_NAME"), List.of("at", "user", "id"));
        check(column(metadata.getSchemas(), "TABLE_SCHEM").contains("public"), true);
        check(column(metadata.getImportedKeys(null, "public", "events"), "FK_NAME").isEmpty(), true);
        check(column(metadata.getTypeInfo(), "TYPE_NAME").contains("int8"), true);

        PreparedStatement prepared = connection.prepareStatement("SELECT count(*), max(at), sum(id) FROM events WHERE id = ? AND at >= ?");
        // More than five times, from which on the driver keeps the statement.
        for (long id = 1; id < 12; id++) {
            prepared.setLong(1, id);
            prepared.setTimestamp(2, Timestamp.valueOf("2026-01-01 00:00:00"));
            ResultSet row = prepared.executeQuery();
            check(row.next(), true);
            check(row.getLong(1), 1L);
            check(row.getBigDecimal(3), BigDecimal.valueOf(id));
        }
        PreparedStatement largest = connection.prepareStatement("SELECT user FROM events WHERE id = ?");
        largest.setBigDecimal(1, new BigDecimal("18446744073709551615"));
        check(column(largest.executeQuery(), "user"), List.of("u0"));
        PreparedStatement several = connection.prepareStatement("SELECT count(*) AS n FROM events WHERE id = ANY(?)");
        several.setArray(1, connection.createArrayOf("int8", new Object[] {1L, 2L, 3L}));
        check(column(several.executeQuery(), "n"), List.of("3"));

        connection.setAutoCommit(false);
        Statement portal = connection.createStatement();
        portal.setFetchSize(700);
        ResultSet rows = portal.executeQuery("SELECT id FROM events");
        int count = 0;
        while (rows.next()) {
            count++;
        }
        check(count, 3000);
        connection.commit();
        try {
            portal.executeUpdate("DELETE FROM events");
            throw new AssertionError("rows were deleted");
        } catch (SQLException error) {
            check(error.getSQLState(), "25006");
        }
        connection.rollback();
        ByteArrayOutputStream copied = new ByteArrayOutputStream();
        ((org.postgresql.PGConnection) connection).getCopyAPI().copyOut("COPY (SELECT id, user FROM events WHERE id = 7) TO STDOUT WITH CSV HEADER", copied);
        check(copied.toString(), "id,user\n7,u7\n");
        Statement slow = connection.createStatement();
        slow.setQueryTimeout(1);
        try {
            slow.executeQuery("SELECT count(*) FROM events a, events b, events c WHERE a.cost + b.cost + c.cost = -7");
            throw new AssertionError("the query has no time limit");
        } catch (SQLException error) {
            check(error.getSQLState(), "57014");
        }
        connection.close();
        System.out.println("all checks passed");
    }
}
