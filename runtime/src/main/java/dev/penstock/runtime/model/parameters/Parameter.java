package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.cuda.device.AdamWParameter;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.OptimizerState;
import dev.penstock.runtime.model.shape.Sharding;
import dev.penstock.runtime.model.swap.SwappedGroup;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A parameter in its group. Vectors are matrices of one row.
 *
 * @param offset of its first element in the group
 * @param weights the whole in F32, if it exists in F32
 * @param factors the matrix that products read: a BF16 copy, or the weights themselves
 * @param gradients the matrix to which backwards add; null if it is not trained
 */
public record Parameter(
        ParameterSpec spec,
        ParameterGroup group,
        long offset,
        GroupView weights,
        GroupView factors,
        @Nullable GroupView gradients) {

    public String name() {
        return spec.name();
    }

    public Tensor weight() {
        return weights.tensor();
    }

    public Tensor factor() {
        return factors.tensor();
    }

    /** Returns the table whose rows are looked up: in F32, or as narrow as it is held. */
    public Tensor table() {
        return group.isNarrow() ? factor() : weight();
    }

    /** Returns the matrix to which backwards add. */
    public Tensor gradient() {
        return gradientView().tensor();
    }

    /** Returns the matrix's row of exact sums if there are such, otherwise of its gradient. */
    public Tensor gradientSum() {
        Tensor all = group.trained().gradient().sums();
        return Stretches.of(all, offset, elements());
    }

    /**
     * Returns whether the gradient has memory of its own, in which nothing is cleared before an
     * update.
     */
    public boolean keepsGradient() {
        return !group.sharding().gradients();
    }

    /** Returns the form of its moments. */
    public OptimizerState formOfMoments() {
        return group.sharding().state();
    }

    GroupView gradientView() {
        if (gradients == null) {
            throw new IllegalStateException(name() + " is not trained");
        }
        return gradients;
    }

    /** Returns whether it has a gradient and moments. */
    public boolean isTrained() {
        return gradients != null;
    }

    private long elements() {
        return spec.piece().elements();
    }

    /** Returns which of its elements this rank updates and saves. */
    Sharding.Part held() {
        return group.sharding().held(group.elements()).within(offset, elements());
    }

    /** Returns which of its elements this rank counts in norms. */
    public Sharding.Part own() {
        return counted(group.sharding());
    }

    /** Returns which of its elements one of several ranks counts that hold it whole. */
    public Sharding.Part own(int members, int member) {
        return counted(group.sharding().among(members, member));
    }

    private Sharding.Part counted(Sharding sharding) {
        return sharding.counted(group.elements()).within(offset, elements());
    }

    public boolean isHeld() {
        return held().count() > 0;
    }

    /** Returns {@link #held} as a piece of the whole parameter. */
    public TensorPiece piece() {
        Sharding.Part held = held();
        return held.count() == elements()
                ? spec.piece()
                : spec.piece().stretch(held.from(), held.to());
    }

    public Tensor heldMaster() {
        return of(group.master(), held());
    }

    public Tensor heldGradient() {
        return of(group.trained().gradient().part(), held());
    }

    /** Returns the gradient of {@link #own}. */
    public Tensor ownGradient() {
        return gradient(own());
    }

    /** Returns the gradient of some of its elements. */
    public Tensor gradient(Sharding.Part elements) {
        return of(group.trained().gradient().part(), elements);
    }

    /** Returns the first moments of the held elements: an F32 row, or coded blocks. */
    public Tensor heldM() {
        Sharding.Part held = held();
        return group.trained().moments().first(inPart(held), held.count());
    }

    /** Returns the second moments of the held elements, likewise. */
    public Tensor heldV() {
        Sharding.Part held = held();
        return group.trained().moments().second(inPart(held), held.count());
    }

    /**
     * Returns what an update changes: the held part, and the copy that products read if this rank
     * can tell it alone.
     */
    public AdamWParameter update(boolean decays) {
        Tensor copies = group.ownCopies();
        Tensor rounded = copies == null ? null : of(copies, held());
        return new AdamWParameter(heldMaster(), heldGradient(), heldM(), heldV(), rounded, decays);
    }

    /** Returns whether an update of some elements of the group, which is swapped, changes it. */
    public boolean isIn(SwappedGroup.Stretch stretch) {
        return part(stretch).count() > 0;
    }

    private Sharding.Part part(SwappedGroup.Stretch stretch) {
        return new Sharding.Part(stretch.first(), stretch.first() + stretch.gradient().columns())
                .within(offset, elements());
    }

    /** Returns what such an update changes of this parameter. */
    public AdamWParameter update(SwappedGroup.Stretch stretch, boolean decays) {
        Sharding.Part part = part(stretch);
        long first = offset + part.from() - stretch.first();
        var moments = new Moments(stretch.state().m(), stretch.state().v(), formOfMoments());
        return new AdamWParameter(
                Stretches.of(stretch.state().master(), first, part.count()),
                Stretches.of(stretch.gradient(), first, part.count()),
                moments.first(first, part.count()),
                moments.second(first, part.count()),
                null,
                decays);
    }

    /** Returns the elements of this parameter in a tensor of the group's held part. */
    private Tensor of(Tensor groupPart, Sharding.Part elements) {
        return Stretches.of(groupPart, inPart(elements), elements.count());
    }

    /** Returns where elements of this parameter begin in the group's held part. */
    private long inPart(Sharding.Part elements) {
        return offset + elements.from() - group.sharding().held(group.elements()).from();
    }

    /** Returns the weight, and the moments if it is trained, under the names that files use. */
    public List<NamedTensor> state() {
        var weight =
                new NamedTensor(name(), piece(), group.isOfIntegers() ? factor() : heldMaster());
        if (!isTrained()) {
            return group.sharding().speaks() ? List.of(weight) : List.of();
        }
        return List.of(
                weight,
                new NamedTensor("optimizer.m." + name(), piece(), heldM()),
                new NamedTensor("optimizer.v." + name(), piece(), heldV()));
    }
}
