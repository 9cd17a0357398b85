package dev.penstock.runtime.model.swap;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Tensor;

/** A row in a file of its own. */
final class FiledRow implements SwappedRow, AutoCloseable {
    private final SwapFile file;
    private final Tensor tensor;
    private final FiledGroup.Shared shared;

    FiledRow(SwapFile file, DType type, int columns, FiledGroup.Shared shared) {
        this.file = file;
        this.shared = shared;
        tensor = new Tensor(file, 0, type, 1, columns, columns);
    }

    @Override
    public Tensor tensor() {
        return tensor;
    }

    @Override
    public long step() {
        return file.step();
    }

    @Override
    public void seal(long step, long until) {
        shared.seal(file, new SwapFile.Stamp(step, until));
    }

    @Override
    public void leave() {
        file.leave();
    }

    long bytes() {
        return file.bytes();
    }

    @Override
    public void close() {
        file.close();
    }
}
