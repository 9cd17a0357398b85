package dev.penstock.actors.collective;

/**
 * How members that know each other by the data plane alone sum and gather. Both forms add in member
 * order and give the same bits. Of S bytes among N members:
 *
 * <pre>
 *                    direct, each member sends     ring, the busiest member sends
 *   reduce-scatter   S (N-1)/N                     S           members add one after the other
 *   all-gather       S (N-1)/N                     S (N-1)/N
 *   all-reduce       2 S (N-1)/N                   2 S         (S with two members)
 * </pre>
 *
 * The rings of the literature (Patarasuk and Yuan, 2009) begin every part's sum at another member
 * and so save the difference, at the price of another order of addends for every part. What a ring
 * has for its bytes: all but the sums of a reduce-scatter go from neighbour to neighbour, and where
 * neighbours share hosts, a link between two hosts carries each byte once or twice, not once for
 * every member behind it.
 */
public enum CollectiveForm {
    /** Every part goes from everybody to its owner, and from there to everybody. */
    DIRECT,
    /** Blocks go from member to member, one behind the other, so that all links are busy. */
    RING;

    /** No tensor is so large. */
    public static final long NEVER = Long.MAX_VALUE;

    /**
     * The form of a collective over the data plane.
     *
     * @param bytes of the whole tensor
     * @param ringFromBytes tensors of so many bytes or more go round; {@link #NEVER} for none
     */
    public static CollectiveForm of(long bytes, long ringFromBytes) {
        return bytes >= ringFromBytes ? RING : DIRECT;
    }

    /** Bytes that a member sends to all others together, for a sum or a gather. */
    public long sentBytes(CollectiveKind kind, ShardMap map, int member, int elementBytes) {
        long elements =
                switch (this) {
                    case DIRECT -> direct(kind, map, member);
                    case RING -> map.parts() == 1 ? 0 : ring(kind, map, member);
                };
        return elements * elementBytes;
    }

    private static long direct(CollectiveKind kind, ShardMap map, int member) {
        long scattered = kind.sums() ? map.elements() - map.count(member) : 0;
        long gathered = kind.gathers() ? map.count(member) * (map.parts() - 1) : 0;
        return scattered + gathered;
    }

    private static long ring(CollectiveKind kind, ShardMap map, int member) {
        int last = map.parts() - 1;
        long all = map.elements();
        long chain = member < last ? all : 0;
        return switch (kind) {
            case REDUCE_SCATTER -> chain + (member == last ? all - map.count(last) : 0);
            case ALL_REDUCE -> chain + (member == last - 1 ? 0 : all);
            case ALL_GATHER -> all - map.count((member + 1) % map.parts());
            case PASS -> throw new IllegalArgumentException("a pass has one form: " + kind);
        };
    }
}
