package dev.penstock.actors.rank;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.penstock.actors.serialization.WireMessage;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.List;

/**
 * Which locations a rank holds, in a few bytes: the ranks in a square, with a digest of each row
 * and of each column. A location that differs makes both of its digests differ.
 *
 * <pre>
 *      0  1  2  | a
 *      3  4  5  | b       if rank 4 has moved, b and d differ; if 3, 4 and 5 have, b and all columns
 *      6  7     | c
 *     ---------
 *      d  e  f
 * </pre>
 *
 * Of a thousand ranks they take half a kilobyte. Where locations differ in several rows and
 * columns, some that are the same seem to differ as well.
 */
public record LocationDigests(List<Long> rows, List<Long> columns) implements WireMessage {
    /** Of no locations: all others differ from it. */
    public static final LocationDigests NONE = new LocationDigests(List.of(), List.of());

    public LocationDigests {
        rows = List.copyOf(rows);
        columns = List.copyOf(columns);
    }

    /**
     * Digests the locations of all ranks.
     *
     * @param byRank entry r is that of rank r
     */
    public static LocationDigests of(List<RankLocation> byRank) {
        int width = (int) Math.ceil(Math.sqrt(byRank.size()));
        long[] rows = new long[width];
        long[] columns = new long[width];
        MessageDigest hash = sha256();
        for (RankLocation location : byRank) {
            // the text of a record has all its components, whichever may be added
            byte[] bytes = hash.digest(location.toString().getBytes(UTF_8));
            long digest = ByteBuffer.wrap(bytes).getLong();
            rows[location.rank() / width] += digest;
            columns[location.rank() % width] += digest;
        }
        return new LocationDigests(
                Arrays.stream(rows).boxed().toList(), Arrays.stream(columns).boxed().toList());
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }

    /** Returns whether the location of this rank may be another there; if not, it is the same. */
    public boolean mayDiffer(LocationDigests other, int rank) {
        int width = columns.size();
        boolean sameSquare = other.rows.size() == rows.size() && other.columns.size() == width;
        return !sameSquare
                || (!rows.get(rank / width).equals(other.rows.get(rank / width))
                        && !columns.get(rank % width).equals(other.columns.get(rank % width)));
    }
}
