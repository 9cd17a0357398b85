package dev.penstock.runtime.model.parameters;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.shape.Sharding;
import dev.penstock.runtime.model.swap.SwapSpace;
import dev.penstock.runtime.model.swap.SwappedGroup;
import org.jspecify.annotations.Nullable;

/**
 * Parameters that lie together, each at the start of a 64-byte line, or of a block of moments, so
 * that one collective moves them all; the gaps between them are zero and stay zero.
 *
 * <pre>
 *   weights   F32   whole if anything reads them in F32, or gathered
 *   factors   what matrix products read: BF16, whole or gathered, or the weights themselves
 *   master    F32   the held part: in the weights, or in memory of its own
 *   m, v      F32   the held part, or codes of its elements
 * </pre>
 *
 * <p>A group that is narrow has factors and nothing else, BF16, F16 or I8, which are the master, as
 * that never changes.
 */
public final class ParameterGroup {
    private static final int LINE_ELEMENTS = 16;

    private final String name;
    private final Sharding sharding;
    private final boolean trained;
    private final boolean readsWeights;
    private final @Nullable DType narrow;
    private final @Nullable DType copies;
    private final GroupBuffer weights;
    private final GroupBuffer factors;
    private final GroupBuffer gradients;
    private long elements;
    private @Nullable Tensor master;
    private @Nullable Training training;
    private @Nullable Swapped swapped;

    /** What takes the place of master and training where the group is swapped. */
    private record Swapped(SwappedGroup files, GroupGradient gradient) {}

    /** The tensors added by training; moments of the held part. */
    public record Training(GroupGradient gradient, Moments moments) {}

    /**
     * @param trained whether training changes the parameters
     * @param readsWeights whether anything reads F32 elements of the whole
     * @param copies type of the rounded copies that matrix products read; null if they read none
     */
    ParameterGroup(
            String name,
            Sharding sharding,
            boolean trained,
            boolean readsWeights,
            @Nullable DType copies) {
        this(name, sharding, trained, readsWeights, copies, null);
    }

    /**
     * Returns a group of matrices that are not trained and exist in a narrow type alone.
     *
     * @param sharding none for I8, whose rows lie apart
     */
    static ParameterGroup narrow(String name, Sharding sharding, DType type) {
        return new ParameterGroup(name, sharding, false, false, type, type);
    }

    private ParameterGroup(
            String name,
            Sharding sharding,
            boolean trained,
            boolean readsWeights,
            @Nullable DType copies,
            @Nullable DType narrow) {
        this.name = name;
        this.copies = copies;
        this.narrow = narrow;
        this.sharding = sharding;
        this.trained = trained;
        this.readsWeights = readsWeights;
        weights = new GroupBuffer("weights of " + name);
        factors = copies != null ? new GroupBuffer("factors of " + name) : weights;
        gradients = new GroupBuffer("gradients of " + name);
    }

    /** Takes in one more parameter; to be called before {@link #allocate}. */
    Parameter add(ParameterSpec spec, boolean training) {
        long offset = elements;
        int unit = sharding.state().unit();
        long more =
                narrow == DType.I8
                        ? (long) spec.rows() * narrow.rowStride(spec.columns())
                        : spec.piece().elements();
        elements += Math.ceilDiv(more, (long) unit) * unit;
        return new Parameter(
                spec,
                this,
                offset,
                new GroupView(weights, offset, spec),
                new GroupView(factors, offset, spec),
                training && trained ? new GroupView(gradients, offset, spec) : null);
    }

    /** Allocates the memory of all parameters; a mirror has none of what never changes. */
    void allocate(StageScopes scopes, ParameterAllocator.Use use) {
        if (use == ParameterAllocator.Use.MIRROR && !trained) {
            return;
        }
        if (narrow == DType.I8) {
            factors.bind(row(scopes.parameters(), "int8." + name, narrow, elements));
            master = factors.whole();
            return;
        }
        if (isRounded()) {
            allocateRounded(scopes);
            return;
        }
        SwapSpace swap = scopes.swap();
        if (swap != null) {
            allocateSwapped(swap);
            return;
        }
        boolean computes = use != ParameterAllocator.Use.MIRROR;
        boolean resident = computes && !sharding.parameters();
        if (resident && hasCopies()) {
            factors.bind(row(scopes.parameters(), "rounded." + name, copyType(), elements));
        }
        boolean masterInWeights = !sharding.moments() || (resident && readsWeights);
        Sharding.Part held = sharding.held(elements);
        if (masterInWeights) {
            weights.bind(row(scopes.parameters(), name, DType.F32, elements));
            master = Stretches.of(weights.whole(), held.from(), held.count());
        } else {
            master = row(scopes.ownParts(), "own part of " + name, DType.F32, held.count());
        }
        if (trained && use != ParameterAllocator.Use.INFER) {
            training =
                    new Training(
                            gradient(scopes, gradients, computes),
                            Moments.allocate(
                                    scopes.optimizer(), name, held.count(), sharding.state()));
        }
    }

    /** Backwards add to the gradient where it lies, in a mapped file. */
    private void allocateSwapped(SwapSpace swap) {
        SwappedGroup files = swap.group(name, elements, sharding.state());
        gradients.bind(files.gradient());
        var gradient =
                new GroupGradient(gradients, files.gradient(), sharding, elements, null, files);
        swapped = new Swapped(files, gradient);
    }

    /** Returns the files of a group that is swapped; null if it is not. */
    public @Nullable SwappedGroup files() {
        return swapped == null ? null : swapped.files();
    }

    private void allocateRounded(StageScopes scopes) {
        Sharding.Part held = sharding.held(elements);
        if (sharding.parameters()) {
            master = row(scopes.ownParts(), "own part of " + name, copyType(), held.count());
        } else {
            factors.bind(row(scopes.parameters(), "rounded." + name, copyType(), elements));
            master = factors.whole();
        }
    }

    /** Allocates a gradient besides the group's own, cut the same way. */
    GroupGradient secondGradient(StageScopes scopes) {
        return gradient(scopes, new GroupBuffer("second gradients of " + name), true);
    }

    private GroupGradient gradient(StageScopes scopes, GroupBuffer into, boolean accumulates) {
        Sharding.Part held = sharding.held(elements);
        boolean apart = sharding.gradients() || (sharding.moments() && !accumulates);
        if (!apart) {
            into.bind(row(scopes.gradients(), into.name(), DType.F32, elements));
        }
        Tensor part =
                apart
                        ? row(scopes.gradients(), into.name(), DType.F32, held.count())
                        : Stretches.of(into.whole(), held.from(), held.count());
        ExactSum exact =
                sharding.exact() && accumulates
                        ? ExactSum.allocate(scopes.gradients(), into.name(), sharding, elements)
                        : null;
        return new GroupGradient(into, part, sharding, elements, exact, null);
    }

    /** Returns a dense row; memory cannot allocate empty tensors. */
    static Tensor row(DeviceScope scope, String name, DType type, long count) {
        Tensor row = scope.tensor(name, type, 1, Math.toIntExact(Math.max(LINE_ELEMENTS, count)));
        return row.columns(0, Math.toIntExact(count));
    }

    String name() {
        return name;
    }

    public long elements() {
        return elements;
    }

    public Sharding sharding() {
        return sharding;
    }

    /** Returns whether anything reads F32 elements of the whole. */
    public boolean readsWeights() {
        return readsWeights;
    }

    GroupBuffer weights() {
        return weights;
    }

    GroupBuffer factors() {
        return factors;
    }

    Tensor master() {
        return swapped == null ? allocated(master) : swapped.files().state().master();
    }

    /** Returns whether anything of it has memory for longer than it is gathered. */
    boolean isAllocated() {
        return master != null || swapped != null;
    }

    /** Returns whether it has gradients and moments. */
    public boolean isTrained() {
        return training != null || swapped != null;
    }

    public Training trained() {
        if (swapped != null) {
            SwappedGroup.State state = swapped.files().state();
            return new Training(
                    swapped.gradient(), new Moments(state.m(), state.v(), sharding.state()));
        }
        return allocated(training);
    }

    private <T> T allocated(@Nullable T part) {
        if (part == null) {
            throw new IllegalStateException(name + " was not allocated for this use");
        }
        return part;
    }

    /** Returns whether the factors are all that there is. */
    public boolean isNarrow() {
        return narrow != null;
    }

    /** Returns whether it exists in BF16 or F16 alone. */
    public boolean isRounded() {
        return narrow == DType.BF16 || narrow == DType.F16;
    }

    /**
     * Returns whether it exists in I8 alone; its elements are bytes then, those of the rows' scales
     * among them.
     */
    public boolean isOfIntegers() {
        return narrow == DType.I8;
    }

    /** Returns the type of {@link #factors} that lie apart. */
    DType copyType() {
        return allocated(copies);
    }

    /** Returns whether factors lie apart from the F32 elements, if there are such. */
    boolean hasCopies() {
        return factors != weights;
    }

    /** The master changed: updates what this rank can derive from it without the other replicas. */
    public void masterChanged(Kernels kernels) {
        Tensor copies = ownCopies();
        if (copies != null) {
            kernels.copy(master(), copies);
        }
    }

    /**
     * Lets computations read other values than the master's; with the master itself, its own again.
     * For groups that no replica holds a part of.
     *
     * @param values F32, a dense row of all elements
     */
    void readInstead(Tensor values, Kernels kernels) {
        weights.bind(values);
        Tensor copies = ownCopies();
        if (copies != null) {
            kernels.copy(values, copies);
        }
    }

    /** Returns the copies of the master that follow it at once; null if there are none. */
    @Nullable Tensor ownCopies() {
        return hasCopies() && !isNarrow() && !sharding.gathers() ? factors.whole() : null;
    }
}
