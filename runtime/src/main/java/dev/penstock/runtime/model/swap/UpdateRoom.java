package dev.penstock.runtime.model.swap;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.OptimizerState;

/** What an update works in: a stretch of the state and of its gradient. */
record UpdateRoom(SwappedGroup.State state, Tensor gradient) {
    /** The elements that an update changes at a time: whole blocks of coded moments. */
    static final int STRETCH = 1 << 14;

    static UpdateRoom allocate(DeviceScope scratch) {
        return new UpdateRoom(
                new SwappedGroup.State(
                        row(scratch, "master"), row(scratch, "m"), row(scratch, "v")),
                row(scratch, "gradient"));
    }

    private static Tensor row(DeviceScope scratch, String name) {
        return scratch.tensor(name + " of an update", DType.F32, 1, STRETCH);
    }

    /** Returns the room of fewer elements, whose moments are in a form. */
    UpdateRoom first(int count, OptimizerState form) {
        return new UpdateRoom(
                new SwappedGroup.State(
                        state.master().columns(0, count),
                        moments(state.m(), count, form),
                        moments(state.v(), count, form)),
                gradient.columns(0, count));
    }

    private static Tensor moments(Tensor room, int count, OptimizerState form) {
        if (form == OptimizerState.FLOAT32) {
            return room.columns(0, count);
        }
        int bytes = Math.toIntExact(form.bytes(count));
        return new Tensor(room.buffer(), room.offsetBytes(), DType.I8, 1, bytes, bytes);
    }
}
