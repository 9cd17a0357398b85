package dev.penstock.runtime.model.swap;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;

/** What an update works in: a stretch of the state and of its gradient. */
record UpdateRoom(SwappedGroup.State state, Tensor gradient) {
    /** The elements that an update changes at a time. */
    static final int STRETCH = 1 << 16;

    static UpdateRoom allocate(DeviceScope scratch) {
        return new UpdateRoom(
                new SwappedGroup.State(
                        row(scratch, "master"), row(scratch, "m"), row(scratch, "v")),
                row(scratch, "gradient"));
    }

    private static Tensor row(DeviceScope scratch, String name) {
        return scratch.tensor(name + " of an update", DType.F32, 1, STRETCH);
    }

    /** Returns the room of fewer elements. */
    UpdateRoom first(int count) {
        return new UpdateRoom(
                new SwappedGroup.State(
                        state.master().columns(0, count),
                        state.m().columns(0, count),
                        state.v().columns(0, count)),
                gradient.columns(0, count));
    }
}
