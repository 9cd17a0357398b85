package dev.penstock.actors.collective.library;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.penstock.actors.collective.BlockingWait;
import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.CollectiveLibrary;
import dev.penstock.actors.collective.FlatTensor;
import dev.penstock.actors.collective.GroupRole;
import dev.penstock.actors.collective.OpenGroup;
import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceCollectives;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Function;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Members whose devices sum and gather by a library of their maker. They meet in another group,
 * which also carries what the library does not, and everything if not all of them can use it:
 *
 * <pre>
 *   the first collective   every member tells all others its device, and the first one an id
 *   then                   a thread of each joins with the id; nobody else waits for that
 *   then                   what was begun goes to the library, in order
 * </pre>
 */
public final class LibraryGroup implements OpenGroup {
    private static final Logger LOG = LoggerFactory.getLogger(LibraryGroup.class);

    /** Of what a member tells: whether it can, its device's number and identity, the id. */
    private static final int INTS = 64;

    private static final int NUMBER_AT = 4;
    private static final int IDENTITY_AT = 8;
    private static final int ID_AT = 64;

    private final OpenGroup others;
    private final List<Integer> ranks;
    private final GroupRole role;
    private final boolean required;
    private final BlockingWait wait;
    private final Optional<DeviceCollectives> library;
    private final String missing;
    private final Tensor told;
    private final Deque<Begun> waiting = new ArrayDeque<>();
    private final long[] sentBytes = new long[CollectiveKind.values().length];
    private @Nullable Collective telling;
    private @Nullable CompletableFuture<Boolean> joining;

    /** Sent to tell: no use of the run's. */
    private long toldBytes;

    private Use use = Use.NOT_KNOWN;

    private enum Use {
        NOT_KNOWN,
        LIBRARY,
        OTHERS
    }

    /**
     * @param others the same members, who know each other otherwise; closed with this
     * @param ranks of the members
     * @param library {@link CollectiveLibrary#WHERE_FOUND} or {@link CollectiveLibrary#REQUIRED}
     * @param scope for what members tell each other
     * @param limit how long a wait inside an op may be
     * @throws DeviceException if it is required and this member's device has none
     */
    public LibraryGroup(
            OpenGroup others,
            GroupRole role,
            List<Integer> ranks,
            CollectiveLibrary library,
            Device device,
            DeviceScope scope,
            Duration limit,
            RankWaits waits) {
        this.others = others;
        this.role = role;
        this.ranks = List.copyOf(ranks);
        this.required = library == CollectiveLibrary.REQUIRED;
        this.wait = new BlockingWait(ranks.get(others.index()), limit, waits);
        this.told = scope.tensor("what members of " + role + " tell", DType.I32, size(), INTS);
        Optional<DeviceCollectives> found = Optional.empty();
        String reason = "";
        try {
            found = Optional.of(device.openCollectives());
        } catch (DeviceException e) {
            if (required) {
                throw e;
            }
            reason = String.valueOf(e.getMessage());
        }
        this.library = found;
        this.missing = reason;
    }

    /** Device memory of a group of so many members, beside the other group's. */
    public static long bytes(int members) {
        return (long) members * INTS * DType.I32.bytes();
    }

    @Override
    public int size() {
        return others.size();
    }

    @Override
    public int index() {
        return others.index();
    }

    @Override
    public Collective reduceScatter(Tensor whole, ShardMap map) {
        FlatTensor.check(CollectiveKind.REDUCE_SCATTER, whole, map, size());
        return begin(
                new Begun(
                        CollectiveKind.REDUCE_SCATTER,
                        whole,
                        map,
                        by -> by.reduceScatter(whole, bounds(map)),
                        by -> by.reduceScatter(whole, map)));
    }

    @Override
    public Collective allGather(Tensor whole, ShardMap map) {
        FlatTensor.check(CollectiveKind.ALL_GATHER, whole, map, size());
        return begin(
                new Begun(
                        CollectiveKind.ALL_GATHER,
                        whole,
                        map,
                        by -> by.allGather(whole, bounds(map)),
                        by -> by.allGather(whole, map)));
    }

    @Override
    public Collective allReduce(Tensor tensor) {
        var map = new ShardMap(tensor.elements(), size());
        FlatTensor.check(CollectiveKind.ALL_REDUCE, tensor, map, size());
        return begin(
                new Begun(
                        CollectiveKind.ALL_REDUCE,
                        tensor,
                        map,
                        by -> by.allReduce(tensor),
                        by -> by.allReduce(tensor)));
    }

    @Override
    public Collective pass(Tensor sent, Tensor received) {
        return others.pass(sent, received);
    }

    private static long[] bounds(ShardMap map) {
        long[] bounds = new long[map.parts() + 1];
        for (int part = 0; part < map.parts(); part++) {
            bounds[part + 1] = map.to(part);
        }
        return bounds;
    }

    private Collective begin(Begun collective) {
        waiting.add(collective);
        advanceAll();
        return collective;
    }

    private void advanceAll() {
        if (use == Use.NOT_KNOWN) {
            agree();
        }
        while (use != Use.NOT_KNOWN && !waiting.isEmpty()) {
            waiting.remove().start();
        }
    }

    // ---- whether all can ------------------------------------------------------------------------

    private void agree() {
        if (telling == null) {
            tell();
            telling = others.allGather(told, new ShardMap(told.elements(), size(), INTS));
        }
        if (joining == null && telling.advance()) {
            toldBytes = others.sentBytes(CollectiveKind.ALL_GATHER);
            String problem = problem();
            if (problem.isEmpty()) {
                join();
            } else if (required) {
                throw new DeviceException(
                        "%s of ranks %s: expected NCCL on a GPU of its own for each, but %s; try parallel.collectives = ordered"
                                .formatted(role, ranks, problem));
            } else {
                LOG.info("{} of ranks {} sums in rank order: {}", role, ranks, problem);
                use = Use.OTHERS;
                close(library);
            }
        }
        if (joining != null && joining.isDone()) {
            joined(joining);
        }
    }

    private void tell() {
        MemorySegment mine = MemorySegment.ofArray(new long[INTS / 2]);
        library.ifPresent(here -> describe(here, mine));
        told.rows(index(), 1).write(mine);
    }

    private void describe(DeviceCollectives here, MemorySegment mine) {
        mine.set(JAVA_INT, 0, 1);
        if (here.idBytes() > INTS * Integer.BYTES - ID_AT) {
            throw new IllegalStateException(
                    "no room for an id of %d bytes".formatted(here.idBytes()));
        }
        mine.set(JAVA_INT, NUMBER_AT, here.device());
        mine.set(JAVA_LONG, IDENTITY_AT, here.deviceId().getMostSignificantBits());
        mine.set(JAVA_LONG, IDENTITY_AT + Long.BYTES, here.deviceId().getLeastSignificantBits());
        if (index() == 0) {
            mine.asSlice(ID_AT, here.idBytes()).copyFrom(MemorySegment.ofArray(here.newId()));
        }
    }

    private MemorySegment own(int member) {
        return told.rows(member, 1).contents();
    }

    /** Why not all members can use the library; empty if they can. */
    private String problem() {
        if (!missing.isEmpty()) {
            return missing;
        }
        Set<UUID> devices = new HashSet<>();
        for (int member = 0; member < size(); member++) {
            MemorySegment its = own(member);
            if (its.get(JAVA_INT, 0) == 0) {
                return "rank %d has none".formatted(ranks.get(member));
            }
            var device =
                    new UUID(
                            its.get(JAVA_LONG, IDENTITY_AT),
                            its.get(JAVA_LONG, IDENTITY_AT + Long.BYTES));
            if (!devices.add(device)) {
                return "rank %d shares GPU %d with another"
                        .formatted(ranks.get(member), its.get(JAVA_INT, NUMBER_AT));
            }
        }
        return "";
    }

    /** The library waits for all members, however long they take: not on the rank's thread. */
    private void join() {
        DeviceCollectives here = library.orElseThrow();
        byte[] id = own(0).asSlice(ID_AT, here.idBytes()).toArray(JAVA_BYTE);
        var done = new CompletableFuture<Boolean>();
        joining = done;
        Thread.ofPlatform()
                .daemon()
                .name("joining %s of rank %d".formatted(role, ranks.get(index())))
                .start(
                        () -> {
                            try {
                                here.join(id, size(), index());
                                done.complete(true);
                            } catch (RuntimeException | Error e) {
                                done.completeExceptionally(e);
                            }
                        });
    }

    private void joined(CompletableFuture<Boolean> done) {
        try {
            done.join();
        } catch (CompletionException e) {
            throw new DeviceException(
                    "%s of ranks %s: rank %d could not join: %s"
                            .formatted(
                                    role,
                                    ranks,
                                    ranks.get(index()),
                                    e.getCause() == null ? e : e.getCause().getMessage()),
                    e);
        }
        use = Use.LIBRARY;
        LOG.info("{} of ranks {} sums by {}", role, ranks, library.orElseThrow().name());
    }

    // ---- one collective -------------------------------------------------------------------------

    private final class Begun implements Collective {
        private static final long NOT_STARTED = -1;

        private final CollectiveKind kind;
        private final Tensor tensor;
        private final ShardMap map;
        private final ToLongFunction<DeviceCollectives> byLibrary;
        private final Function<CollectiveGroup, Collective> byOthers;
        private @Nullable Collective delegate;
        private long number = NOT_STARTED;
        private boolean done;

        Begun(
                CollectiveKind kind,
                Tensor tensor,
                ShardMap map,
                ToLongFunction<DeviceCollectives> byLibrary,
                Function<CollectiveGroup, Collective> byOthers) {
            this.kind = kind;
            this.tensor = tensor;
            this.map = map;
            this.byLibrary = byLibrary;
            this.byOthers = byOthers;
        }

        void start() {
            if (use == Use.OTHERS) {
                delegate = byOthers.apply(others);
            } else {
                number = byLibrary.applyAsLong(library.orElseThrow());
            }
        }

        @Override
        public boolean advance() {
            if (done) {
                return true;
            }
            advanceAll();
            if (delegate != null) {
                done = delegate.advance();
            } else if (number != NOT_STARTED) {
                done = library.orElseThrow().isDone(number);
                if (done) {
                    sentBytes[kind.ordinal()] +=
                            CollectiveForm.DIRECT.sentBytes(
                                    kind, map, index(), tensor.type().bytes());
                }
            }
            return done;
        }

        @Override
        public String describe() {
            if (delegate != null) {
                return delegate.describe();
            }
            return number == NOT_STARTED
                    ? "%s of ranks %s: waits for all to join NCCL".formatted(kind, ranks)
                    : "%s %d of ranks %s by NCCL".formatted(kind, number, ranks);
        }
    }

    @Override
    public void await(Collective collective) {
        wait.until(collective);
    }

    /** By the library, what the direct form or an even ring sends: it does not say itself. */
    @Override
    public long sentBytes(CollectiveKind kind) {
        if (kind == CollectiveKind.PASS || use == Use.OTHERS) {
            return others.sentBytes(kind) - (kind == CollectiveKind.ALL_GATHER ? toldBytes : 0);
        }
        return sentBytes[kind.ordinal()];
    }

    private static void close(Optional<DeviceCollectives> opened) {
        opened.ifPresent(DeviceCollectives::close);
    }

    @Override
    public void close() {
        try {
            close(library);
        } finally {
            others.close();
        }
    }
}
