package dev.penstock.runtime.model.parameters;

import dev.penstock.cuda.device.Tensor;
import org.jspecify.annotations.Nullable;

/** A parameter's matrix in a {@link GroupBuffer}; recreated only when the buffer has moved. */
public final class GroupView {
    private final GroupBuffer buffer;
    private final long offset;
    private final ParameterSpec spec;
    private @Nullable Tensor of;
    private @Nullable Tensor view;

    /**
     * @param offset of its first element in the group
     */
    GroupView(GroupBuffer buffer, long offset, ParameterSpec spec) {
        this.buffer = buffer;
        this.offset = offset;
        this.spec = spec;
    }

    public Tensor tensor() {
        Tensor whole = buffer.whole();
        Tensor known = view;
        if (known == null || !whole.equals(of)) {
            known =
                    new Tensor(
                            whole.buffer(),
                            whole.offsetBytes() + offset * whole.type().bytes(),
                            whole.type(),
                            spec.rows(),
                            spec.columns(),
                            whole.type().rowStride(spec.columns()));
            view = known;
            of = whole;
        }
        return known;
    }
}
