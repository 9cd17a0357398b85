package dev.penstock.actors.collective.wire;

import dev.penstock.actors.collective.BlockingWait;
import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.FlatTensor;
import dev.penstock.actors.collective.GroupRole;
import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.collective.SteppedCollective;
import dev.penstock.actors.collective.SteppedGroup;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Members in several processes, who send each other blocks, in one {@link CollectiveForm} or the
 * other. One collective at a time: blocks of a later one never take the slots that an earlier one
 * needs.
 */
public final class DataPlaneGroup implements SteppedGroup {
    private final List<Integer> ranks;
    private final int index;
    private final Kernels kernels;
    private final BlockingWait wait;
    private final long ringFromBytes;

    /** By member; null at this one's place. */
    private final List<@Nullable BlockChannel> channels = new ArrayList<>();

    private final Deque<SteppedCollective> underWay = new ArrayDeque<>();

    /** By kind, then by member. */
    private final long[][] sentBytes;

    private long begun;

    /**
     * @param index of this rank among {@code ranks}
     * @param runRanks how many the run has
     * @param scope where received blocks lie
     * @param limit how long a wait inside an op may be
     * @param ringFromBytes sums and gathers of tensors of so many bytes or more go round; {@link
     *     CollectiveForm#NEVER} for none
     */
    public DataPlaneGroup(
            GroupRole role,
            List<Integer> ranks,
            int index,
            int runRanks,
            DeviceScope scope,
            Kernels kernels,
            Duration limit,
            long ringFromBytes,
            RankWaits waits) {
        this.ranks = List.copyOf(ranks);
        this.index = index;
        this.kernels = kernels;
        this.ringFromBytes = ringFromBytes;
        this.sentBytes = new long[CollectiveKind.values().length][ranks.size()];
        int rank = ranks.get(index);
        this.wait = new BlockingWait(rank, limit, waits);
        for (int peer : ranks) {
            channels.add(
                    peer == rank
                            ? null
                            : new BlockChannel(rank, peer, role, runRanks, scope, kernels));
        }
    }

    /**
     * Whether members live in several processes, so that they have to meet here.
     *
     * @param homes by rank, the lowest rank that lives in the same process
     */
    public static boolean isFor(List<Integer> members, List<Integer> homes) {
        return members.stream().map(homes::get).distinct().count() > 1;
    }

    /**
     * Device memory of a group of so many members.
     *
     * @param staged whether links read other memory than the device's
     */
    public static long slotBytes(int members, boolean staged) {
        return (members - 1) * BlockChannel.slotBytes(staged);
    }

    public List<Inbound> inbound() {
        return channels.stream().filter(Objects::nonNull).map(BlockChannel::inbound).toList();
    }

    public List<Outbound> outbound() {
        return channels.stream().filter(Objects::nonNull).map(BlockChannel::outbound).toList();
    }

    /** Before the first collective. */
    public void bind(Endpoint endpoint) {
        channels.stream().filter(Objects::nonNull).forEach(channel -> channel.bind(endpoint));
    }

    @Override
    public int size() {
        return ranks.size();
    }

    @Override
    public int index() {
        return index;
    }

    @Override
    public Collective pass(Tensor sent, Tensor received) {
        FlatTensor.checkPass(sent, received);
        var pass = new DataPlanePass(this, begun++, sent, received);
        underWay.add(pass);
        advanceAll();
        return pass;
    }

    @Override
    public Collective begin(CollectiveKind kind, Tensor whole, ShardMap map) {
        FlatTensor.check(kind, whole, map, size());
        SteppedCollective collective =
                switch (CollectiveForm.of(whole.bytes(), ringFromBytes)) {
                    case DIRECT -> new DirectCollective(this, begun++, kind, whole, map);
                    case RING -> new RingCollective(this, begun++, kind, whole, map);
                };
        underWay.add(collective);
        advanceAll();
        return collective;
    }

    /** As far as they get, the oldest first. */
    void advanceAll() {
        while (!underWay.isEmpty() && underWay.getFirst().step()) {
            underWay.removeFirst();
        }
    }

    List<Integer> ranks() {
        return ranks;
    }

    Kernels kernels() {
        return kernels;
    }

    /** To another member. */
    BlockChannel channel(int member) {
        return Objects.requireNonNull(channels.get(member), "a member sends itself nothing");
    }

    /** Whether nothing that was sent may have to be sent again. */
    boolean everythingIsVerified() {
        return channels.stream()
                .filter(Objects::nonNull)
                .allMatch(channel -> channel.isVerified(channel.sent()));
    }

    /**
     * Sends a block to a member; see {@link BlockChannel#send}.
     *
     * @return whether the whole block is on its way
     */
    boolean send(
            CollectiveKind kind,
            int member,
            long number,
            boolean summed,
            int block,
            Tensor tensor) {
        boolean sent = channel(member).send(number, summed, block, tensor);
        if (sent) {
            sentBytes[kind.ordinal()][member] += tensor.bytes();
        }
        return sent;
    }

    @Override
    public void await(Collective collective) {
        wait.until(collective);
    }

    @Override
    public long sentBytes(CollectiveKind kind) {
        return Arrays.stream(sentBytes[kind.ordinal()]).sum();
    }

    /** Bytes sent to one member. */
    long sentBytesTo(int member) {
        return Arrays.stream(sentBytes).mapToLong(toMembers -> toMembers[member]).sum();
    }

    /** The endpoint, closed before, ended it all. */
    @Override
    public void close() {}
}
