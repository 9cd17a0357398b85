package dev.penstock.runtime.model.parameters;

import static java.util.Objects.requireNonNull;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.RowCodec;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.shape.OuterSettings;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.runtime.model.swap.SwapFolder;
import dev.penstock.runtime.model.swap.SwapSpace;
import dev.penstock.runtime.model.swap.SwappedGroup;
import dev.penstock.runtime.model.swap.SwappedRow;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * What a stage of a replica that takes steps alone holds beside its own parameters, in memory or,
 * if those are swapped, with them; see {@link OuterSettings}. The anchors, which are the outer
 * parameters, and the momentum are the same on all replicas. Of one fragment at a time there is
 * room for how far this replica has come, and for the sum over all of them.
 *
 * <pre>
 *   anchors, momentum   F32   every group
 *   own, sum            F32   the largest fragment: its groups one after another, each in whole rows of 256
 *   coded               I32   the rows of all replicas, coded    if differences travel coded
 *   decoded             F32   like own
 * </pre>
 */
public final class OuterState {
    /** Of the names of all tensors that only replicas which take steps alone have. */
    static final String PREFIX = "optimizer.outer.";

    private static final int ROW = OuterSettings.ROW;
    private static final long NONE = -1;

    private final OuterSettings settings;
    private final StageParameters parameters;
    private final int replicas;
    private final List<OfGroup> groups = new ArrayList<>();

    /** By fragment, from its beginning to the end of its last group. */
    private final long[] elements;

    private final Tensor own;
    private final Tensor sum;

    /** Where {@link #own} lies if all of this is swapped. */
    private final @Nullable SwappedRow difference;

    /** What an exchange works in if all of this is swapped. */
    private final List<SwappedRow> exchanged = new ArrayList<>();

    private final @Nullable SwapSpace swap;
    private final @Nullable Tensor coded;
    private final @Nullable Tensor decoded;

    /**
     * @param offset of the group in its fragment
     * @param held in memory; null if the group is swapped
     */
    private record OfGroup(
            ParameterGroup group, int fragment, long offset, SwappedGroup.@Nullable Outer held) {

        SwappedGroup.Outer outer() {
            return held == null ? requireNonNull(group.files()).outer() : held;
        }

        Tensor anchor() {
            return outer().anchor();
        }

        @Nullable Tensor momentum() {
            return outer().momentum();
        }

        Tensor within(Tensor fragment) {
            return Stretches.of(fragment, offset, group.elements());
        }
    }

    private OuterState(
            StageScopes scopes,
            OuterSettings settings,
            StageParameters parameters,
            StageRole role,
            int replicas) {
        DeviceScope scope = scopes.optimizer();
        swap = scopes.swap();
        this.settings = settings;
        this.parameters = parameters;
        this.replicas = replicas;
        elements = new long[settings.fragments()];
        StageParameters.Embedding embedding = parameters.embedding();
        if (embedding != null) {
            add(embedding.tokens(), settings.ofTables(), scope);
            add(embedding.positions(), settings.ofTables(), scope);
            add(embedding.types(), settings.ofTables(), scope);
        }
        for (int i = 0; i < parameters.layers().size(); i++) {
            int fragment = settings.ofLayer(role.firstLayer() + i);
            parameters.layers().get(i).groups().forEach(group -> add(group, fragment, scope));
        }
        StageParameters.Head head = parameters.head();
        if (head != null) {
            boolean tied = head.matrix().name().equals(StageParameters.TOKEN_TABLE);
            add(head.matrix(), tied ? settings.ofTables() : settings.ofHead(), scope);
            add(head.norm().gain(), settings.ofHead(), scope);
        }
        long rows = IntStream.range(0, elements.length).mapToLong(this::rows).max().orElseThrow();
        difference = swap == null ? null : swap.row(SwapFolder.DIFFERENCE, DType.F32, rows * ROW);
        own =
                difference == null
                        ? row(scope, "outer gradient", DType.F32, rows * ROW)
                        : difference.tensor();
        sum = room(scope, "sum of outer gradients", DType.F32, rows * ROW);
        RowCodec codec = settings.codec().orElse(null);
        coded =
                codec == null
                        ? null
                        : room(
                                scope,
                                "coded outer gradients",
                                DType.I32,
                                replicas * rows * codec.words(ROW));
        decoded =
                codec == null ? null : room(scope, "decoded outer gradient", DType.F32, rows * ROW);
    }

    private Tensor room(DeviceScope scope, String name, DType type, long count) {
        if (swap == null) {
            return row(scope, name, type, count);
        }
        SwappedRow row = swap.row(name.replace(' ', '-'), type, count);
        exchanged.add(row);
        return row.tensor();
    }

    private static Tensor row(DeviceScope scope, String name, DType type, long count) {
        return ParameterGroup.row(scope, name, type, count);
    }

    /** Allocates what a stage's parameters need. */
    public static OuterState allocate(
            StageScopes scopes,
            OuterSettings settings,
            StageParameters parameters,
            StageRole role,
            int replicas) {
        return new OuterState(scopes, settings, parameters, role, replicas);
    }

    private void add(@Nullable Parameter parameter, int fragment, DeviceScope scope) {
        if (parameter != null) {
            add(parameter.group(), fragment, scope);
        }
    }

    private void add(ParameterGroup group, int fragment, DeviceScope scope) {
        boolean known = groups.stream().anyMatch(other -> other.group() == group);
        if (known || !group.isTrained()) {
            return;
        }
        // a row is coded as one: copies of a tied table have the same rows, whatever else a stage
        // holds
        long offset = rows(fragment) * ROW;
        groups.add(new OfGroup(group, fragment, offset, held(group, scope)));
        elements[fragment] = offset + group.elements();
    }

    private SwappedGroup.@Nullable Outer held(ParameterGroup group, DeviceScope scope) {
        boolean moves = settings.momentum() != 0;
        SwappedGroup files = group.files();
        if (files != null) {
            files.addOuter(moves);
            return null;
        }
        String of = " of " + group.name();
        Tensor anchor = row(scope, "anchor" + of, DType.F32, group.elements());
        Tensor momentum = moves ? row(scope, "momentum" + of, DType.F32, group.elements()) : null;
        return new SwappedGroup.Outer(anchor, momentum);
    }

    private long rows(int fragment) {
        return Math.ceilDiv(elements[fragment], (long) ROW);
    }

    /** Returns whether anything of a fragment lies on this stage. */
    public boolean has(int fragment) {
        return elements[fragment] > 0;
    }

    private Stream<OfGroup> of(int fragment) {
        return groups.stream().filter(group -> group.fragment() == fragment);
    }

    // ---- what is saved and restored ----------------------------------------------------------

    /**
     * Takes the outer parameters from the parameters, which were filled, and from a source what
     * else it has: a replica that it does not know goes on from the outer parameters, with the
     * moments that it was given.
     *
     * @return the fragment whose mean was being formed; -1 for none
     */
    public int fill(ParameterSource source, int replica, Kernels kernels) {
        int underWay = -1;
        kernels.zero(own);
        anchorHere(kernels);
        try (FillingRoom room = new FillingRoom()) {
            for (Parameter p : parameters.trained()) {
                OfGroup group = groupOf(p);
                Tensor momentum = group.momentum();
                if (momentum != null) {
                    fill(momentum(p), p, view(p, momentum), source, room);
                }
                fill(of(replica, "parameters", p), p, p.heldMaster(), source, room);
                fill(of(replica, "m", p), p, p.heldM(), source, room);
                fill(of(replica, "v", p), p, p.heldV(), source, room);
                Tensor difference = view(p, group.within(own));
                if (fill(of(replica, "difference", p), p, difference, source, room)) {
                    underWay = group.fragment();
                }
            }
        }
        groups.forEach(group -> group.group().masterChanged(kernels));
        return underWay;
    }

    /** The outer parameters are the replica's own, and have not moved yet. */
    public void anchorHere(Kernels kernels) {
        groups.forEach(group -> begin(group, kernels));
        kernels.finish();
    }

    /** The same after a step, of replicas that were equal until then. */
    public void anchorAfter(long step, Kernels kernels) {
        for (OfGroup group : groups) {
            SwappedGroup files = group.group().files();
            if (files == null) {
                begin(group, kernels);
            } else {
                files.anchorAfter(step);
            }
        }
    }

    private static void begin(OfGroup group, Kernels kernels) {
        SwappedGroup files = group.group().files();
        if (files != null) {
            files.anchorHere();
            return;
        }
        kernels.copy(group.group().master(), group.anchor());
        Tensor momentum = group.momentum();
        if (momentum != null) {
            kernels.zero(momentum);
        }
    }

    /** Returns the step after which a difference was noted that is swapped; below 0 for none. */
    public long noted() {
        return difference == null ? NONE : difference.step();
    }

    /**
     * The difference is that after a step.
     *
     * @param until the last step that may begin before its mean is applied
     */
    public void keepDifference(long step, long until) {
        if (difference != null) {
            difference.seal(step, until);
        }
    }

    private static boolean fill(
            String name, Parameter p, Tensor into, ParameterSource source, FillingRoom room) {
        return room.fill(into, p.piece(), memory -> source.fill(name, p.piece(), memory));
    }

    private static String momentum(Parameter p) {
        return PREFIX + "momentum." + p.name();
    }

    private static String of(int replica, String what, Parameter p) {
        return PREFIX + "replica-%d.%s.%s".formatted(replica, what, p.name());
    }

    private OfGroup groupOf(Parameter p) {
        return groups.stream()
                .filter(group -> group.group() == p.group())
                .findFirst()
                .orElseThrow(() -> new IllegalStateException(p.name() + " is in no fragment"));
    }

    private static Tensor view(Parameter p, Tensor ofGroup) {
        return Stretches.of(ofGroup, p.offset(), p.spec().piece().elements());
    }

    /**
     * Returns what a replica puts into a checkpoint: the first one the outer parameters under the
     * names of parameters, its own moments under those of moments, and the momentum; every one its
     * own parameters, and its moments where they are not those.
     *
     * @param underWay the fragment whose mean is being formed; -1 for none
     */
    public List<NamedTensor> state(int replica, int underWay) {
        List<NamedTensor> state = new ArrayList<>();
        for (Parameter p : parameters.counted()) {
            if (!p.isTrained()) {
                state.addAll(replica == 0 ? p.state() : List.of());
                continue;
            }
            OfGroup group = groupOf(p);
            Tensor momentum = group.momentum();
            if (replica == 0) {
                state.add(named(p.name(), p, view(p, group.anchor())));
                state.add(named("optimizer.m." + p.name(), p, p.heldM()));
                state.add(named("optimizer.v." + p.name(), p, p.heldV()));
            } else {
                state.add(named(of(replica, "m", p), p, p.heldM()));
                state.add(named(of(replica, "v", p), p, p.heldV()));
            }
            if (replica == 0 && momentum != null) {
                state.add(named(momentum(p), p, view(p, momentum)));
            }
            state.add(named(of(replica, "parameters", p), p, p.heldMaster()));
            if (group.fragment() == underWay) {
                state.add(named(of(replica, "difference", p), p, view(p, group.within(own))));
            }
        }
        return state;
    }

    /** Returns the same of replicas that are equal: the first one says it for all. */
    public List<NamedTensor> common(int replica) {
        return replica == 0
                ? parameters.counted().stream().flatMap(p -> p.state().stream()).toList()
                : List.of();
    }

    private static NamedTensor named(String name, Parameter p, Tensor tensor) {
        return new NamedTensor(name, p.piece(), tensor);
    }

    // ---- computation -------------------------------------------------------------------------

    /** Forwards read the outer parameters until {@link #readOwn}. */
    public void readAnchors(Kernels kernels) {
        read(true, kernels);
    }

    /** Forwards read the replica's own parameters again. */
    public void readOwn(Kernels kernels) {
        read(false, kernels);
    }

    private void read(boolean anchors, Kernels kernels) {
        for (OfGroup group : groups) {
            SwappedGroup files = group.group().files();
            if (files != null) {
                files.loadOuter(anchors);
            } else {
                group.group()
                        .readInstead(anchors ? group.anchor() : group.group().master(), kernels);
            }
        }
    }

    /** Notes how far this replica has come with a fragment. */
    public void takeDifference(int fragment, Kernels kernels) {
        kernels.zero(own);
        of(fragment).forEach(group -> takeDifference(group, kernels));
    }

    private void takeDifference(OfGroup group, Kernels kernels) {
        Tensor all = group.within(own);
        SwappedGroup files = group.group().files();
        if (files == null) {
            kernels.copy(group.anchor(), all);
            kernels.subtract(group.group().master(), all);
            return;
        }
        files.compare(
                (first, anchor, master) -> {
                    Tensor part = Stretches.of(all, first, anchor.elements());
                    kernels.copy(anchor, part);
                    kernels.subtract(master, part);
                    kernels.finish();
                });
    }

    /** Begins to add up what replicas have noted of a fragment, or to tell each other. */
    public Collective begin(int fragment, CollectiveGroup group, Kernels kernels) {
        Tensor differences = Stretches.of(own, 0, rows(fragment) * ROW);
        RowCodec codec = settings.codec().orElse(null);
        if (coded == null || codec == null) {
            Tensor into = Stretches.of(sum, 0, differences.elements());
            kernels.copy(differences, into);
            kernels.finish();
            return group.allReduce(into);
        }
        long words = rows(fragment) * codec.words(ROW);
        Tensor all = Stretches.of(coded, 0, replicas * words);
        kernels.encode(
                codec, inRows(differences, ROW), inRows(part(all, group.index(), words), codec));
        kernels.finish();
        return group.allGather(all, exchange(fragment).map());
    }

    private static Tensor part(Tensor all, int index, long words) {
        return Stretches.of(all, index * words, words);
    }

    private static Tensor inRows(Tensor flat, RowCodec codec) {
        return inRows(flat, codec.words(ROW));
    }

    private static Tensor inRows(Tensor flat, int columns) {
        return new Tensor(
                flat.buffer(),
                flat.offsetBytes(),
                flat.type(),
                Math.toIntExact(flat.elements() / columns),
                columns,
                columns);
    }

    /**
     * Applies the outer optimizer to a fragment, whose collective is done.
     *
     * @param turn the step after which its difference was noted
     */
    public void apply(int fragment, long turn, Kernels kernels) {
        addDecoded(fragment, kernels);
        of(fragment).forEach(group -> apply(group, turn, kernels));
        exchanged.forEach(SwappedRow::leave);
    }

    private void apply(OfGroup group, long turn, Kernels kernels) {
        Tensor total = group.within(sum);
        SwappedGroup files = group.group().files();
        if (files == null) {
            move(total, group.anchor(), group.momentum(), kernels);
            follow(group.anchor(), group.group().master(), kernels);
            group.group().masterChanged(kernels);
            return;
        }
        files.renewOuter(
                turn,
                (first, anchor, momentum) -> {
                    Tensor part = Stretches.of(total, first, anchor.elements());
                    move(part, anchor, momentum, kernels);
                    kernels.finish();
                },
                (_, anchor, master) -> {
                    follow(anchor, master, kernels);
                    kernels.finish();
                });
    }

    /** The outer step of some elements. */
    private void move(Tensor total, Tensor anchor, @Nullable Tensor velocity, Kernels kernels) {
        float mean = 1f / replicas;
        float rate = (float) settings.learningRate();
        float momentum = (float) settings.momentum();
        if (velocity == null) {
            kernels.blend(-rate * mean, total, 1, anchor);
            return;
        }
        kernels.blend(mean, total, momentum, velocity);
        if (settings.nesterov()) {
            kernels.blend(-rate * mean, total, 1, anchor);
            kernels.blend(-rate * momentum, velocity, 1, anchor);
        } else {
            kernels.blend(-rate, velocity, 1, anchor);
        }
    }

    /** The replica's own parameters after it. */
    private void follow(Tensor anchor, Tensor master, Kernels kernels) {
        float stays = (float) settings.ownShare();
        if (stays == 0) {
            kernels.copy(anchor, master);
        } else {
            kernels.blend(1 - stays, anchor, stays, master);
        }
    }

    /** Adds up what replicas have told each other, in their order. */
    private void addDecoded(int fragment, Kernels kernels) {
        RowCodec codec = settings.codec().orElse(null);
        if (coded == null || decoded == null || codec == null) {
            return;
        }
        long words = rows(fragment) * codec.words(ROW);
        Tensor into = inRows(Stretches.of(sum, 0, rows(fragment) * ROW), ROW);
        Tensor one = inRows(Stretches.of(decoded, 0, rows(fragment) * ROW), ROW);
        kernels.zero(into);
        for (int replica = 0; replica < replicas; replica++) {
            kernels.decode(codec, inRows(part(coded, replica, words), codec), one);
            kernels.add(one, into);
        }
    }

    /**
     * A collective of a fragment.
     *
     * @param map of elements of 4 bytes
     */
    public record Exchange(CollectiveKind kind, ShardMap map) {}

    /** Returns what replicas do together when it is a fragment's turn. */
    public Exchange exchange(int fragment) {
        long words = settings.codec().map(codec -> rows(fragment) * codec.words(ROW)).orElse(0L);
        return words == 0
                ? new Exchange(
                        CollectiveKind.ALL_REDUCE, new ShardMap(rows(fragment) * ROW, replicas))
                : new Exchange(
                        CollectiveKind.ALL_GATHER, new ShardMap(replicas * words, replicas, words));
    }
}
