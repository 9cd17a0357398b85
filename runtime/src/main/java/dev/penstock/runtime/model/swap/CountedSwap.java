package dev.penstock.runtime.model.swap;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.OptimizerState;
import dev.penstock.runtime.model.shape.SwapCommit;
import java.util.function.Consumer;

/** Groups without files, of which only the bytes are known. */
public final class CountedSwap implements SwapSpace {
    private final DeviceScope counting;

    /**
     * @param counting allocates nothing
     * @param scratch counts what an update works in
     */
    public CountedSwap(DeviceScope counting, DeviceScope scratch) {
        this.counting = counting;
        UpdateRoom _ = UpdateRoom.allocate(scratch);
    }

    @Override
    public SwappedGroup group(String name, long elements, OptimizerState form) {
        int columns = Math.toIntExact(elements);
        int words = Math.toIntExact(form.bytes(elements) / Float.BYTES);
        var state = new SwappedGroup.State(row(columns), row(words), row(words));
        return new Counted(state, row(columns), counting);
    }

    @Override
    public SwappedRow row(String name, DType type, long columns) {
        return new CountedRow(counting.tensor(name, type, 1, Math.toIntExact(columns)));
    }

    private Tensor row(int columns) {
        return counting.tensor("swapped", DType.F32, 1, columns);
    }

    @Override
    public void complete() {}

    @Override
    public void commit(SwapCommit update) {}

    @Override
    public long bytes() {
        return counting.liveBytes();
    }

    @Override
    public void close() {}

    private record CountedRow(Tensor tensor) implements SwappedRow {
        @Override
        public long step() {
            return SwapState.FIRST;
        }

        @Override
        public void seal(long step, long until) {}

        @Override
        public void leave() {}
    }

    private record Counted(State state, Tensor gradient, DeviceScope counting)
            implements SwappedGroup {
        @Override
        public long step() {
            return SwapState.FIRST;
        }

        @Override
        public Collective load(Tensor into) {
            return SoloGroup.DONE;
        }

        @Override
        public void clearGradient() {}

        @Override
        public void gradientIsComplete() {}

        @Override
        public void sealGradient(long step) {}

        @Override
        public void renew(long step, Consumer<Stretch> update) {}

        @Override
        public void addOuter(boolean momentum) {
            Tensor _ = counting.tensor("anchor", DType.F32, 1, gradient.columns());
            if (momentum) {
                Tensor _ = counting.tensor("momentum", DType.F32, 1, gradient.columns());
            }
        }

        @Override
        public Outer outer() {
            return new Outer(gradient, null);
        }

        @Override
        public void anchorHere() {}

        @Override
        public void anchorAfter(long step) {}

        @Override
        public void loadOuter(boolean instead) {}

        @Override
        public void compare(OwnStep reader) {}

        @Override
        public void renewOuter(long turn, OuterStep ofOuter, OwnStep ofOwn) {}
    }
}
