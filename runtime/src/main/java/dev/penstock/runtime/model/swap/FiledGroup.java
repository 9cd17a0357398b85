package dev.penstock.runtime.model.swap;

import static java.nio.file.StandardOpenOption.READ;

import dev.penstock.actors.collective.Collective;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.OptimizerState;
import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.function.Consumer;

/** A group in two files: its state, of which every update makes another, and its gradient. */
final class FiledGroup implements SwappedGroup, AutoCloseable {
    static final String STATE = ".state";
    static final String GRADIENT = ".grad";
    private static final String NEXT = ".next";

    private static final int READ_BYTES = 1 << 23;

    private final Path path;
    private final long elements;
    private final OptimizerState form;
    private final Tensor room;
    private final Executor loads;
    private final Consumer<String> beforeWrite;
    private final SwapFile gradient;
    private SwapFile state;

    FiledGroup(
            Path path,
            long elements,
            OptimizerState form,
            Tensor room,
            Executor loads,
            Consumer<String> beforeWrite,
            boolean kept) {
        this.path = path;
        this.elements = elements;
        this.form = form;
        this.room = room;
        this.loads = loads;
        this.beforeWrite = beforeWrite;
        long bytes = elements * Float.BYTES;
        state = file(STATE, bytes + 2 * form.bytes(elements), kept);
        try {
            gradient = file(GRADIENT, bytes, kept);
        } catch (RuntimeException e) {
            state.close();
            throw e;
        }
    }

    private SwapFile file(String suffix, long bytes, boolean kept) {
        Path file = with(suffix);
        try {
            SwapFile opened = kept ? SwapFile.open(file) : SwapFile.create(file, bytes);
            if (opened.bytes() != bytes) {
                opened.close();
                throw new DeviceException(
                        "swap %s: expected %,d bytes of this run's model, got %,d; delete the folder to begin anew"
                                .formatted(file, bytes, opened.bytes()));
            }
            return opened;
        } catch (IOException e) {
            throw SwapFolder.failure("begin", file, e);
        }
    }

    private Path with(String suffix) {
        return path.resolveSibling(path.getFileName() + suffix);
    }

    /** One line for the list of groups. */
    String words() {
        return "%s %d".formatted(path.getFileName(), elements);
    }

    long bytes() {
        return state.bytes() + gradient.bytes();
    }

    /** The first values are there. */
    void sealFirst() {
        beforeWrite.accept(path + STATE);
        state.seal(SwapState.FIRST);
    }

    @Override
    public State state() {
        return stateIn(state);
    }

    private State stateIn(SwapFile file) {
        long parameters = elements * Float.BYTES;
        return new State(
                row(file, 0),
                moment(file, parameters),
                moment(file, parameters + form.bytes(elements)));
    }

    private Tensor row(SwapFile file, long at) {
        int columns = Math.toIntExact(elements);
        return new Tensor(file, at, DType.F32, 1, columns, columns);
    }

    private Tensor moment(SwapFile file, long at) {
        if (form == OptimizerState.FLOAT32) {
            return row(file, at);
        }
        int bytes = Math.toIntExact(form.bytes(elements));
        return new Tensor(file, at, DType.I8, 1, bytes, bytes);
    }

    @Override
    public Tensor gradient() {
        return row(gradient, 0);
    }

    @Override
    public long step() {
        return state.step();
    }

    @Override
    public Collective load(Tensor into) {
        MemorySegment target = into.segment();
        Path from = with(STATE);
        var done = CompletableFuture.runAsync(() -> read(from, target), loads);
        return new Collective() {
            @Override
            public boolean advance() {
                if (done.isCompletedExceptionally()) {
                    throw failure(done);
                }
                return done.isDone();
            }

            @Override
            public String describe() {
                return "load of " + from;
            }
        };
    }

    private static RuntimeException failure(CompletableFuture<Void> done) {
        try {
            done.join();
            return new IllegalStateException("a load that failed is done");
        } catch (CompletionException e) {
            return e.getCause() instanceof DeviceException cause ? cause : e;
        }
    }

    private static void read(Path from, MemorySegment target) {
        try (FileChannel channel = FileChannel.open(from, READ)) {
            for (long at = 0; at < target.byteSize(); at += READ_BYTES) {
                long count = Math.min(READ_BYTES, target.byteSize() - at);
                ByteBuffer block = target.asSlice(at, count).asByteBuffer();
                while (block.hasRemaining()) {
                    long position = SwapFile.HEADER_BYTES + at + block.position();
                    if (channel.read(block, position) < 0) {
                        throw new EOFException("it ends at byte %,d".formatted(position));
                    }
                }
            }
        } catch (IOException e) {
            throw new DeviceException(
                    "swap: expected to read %s, got '%s'; go on with --resume"
                            .formatted(from, e.getMessage()),
                    e);
        }
    }

    @Override
    public void sealGradient(long step) {
        beforeWrite.accept(path + GRADIENT);
        gradient.seal(step);
    }

    @Override
    public void renew(long step, Consumer<Stretch> update) {
        Path next = with(NEXT);
        try {
            beforeWrite.accept(next.toString());
            SwapFile renewed = state.copy(next);
            try {
                State changed = stateIn(renewed);
                for (long first = 0; first < elements; first += SwapFolder.STRETCH) {
                    int count = (int) Math.min(SwapFolder.STRETCH, elements - first);
                    Tensor copy = room.columns(0, count);
                    copy.write(gradient.segment().asSlice(first * 4, (long) count * Float.BYTES));
                    update.accept(new Stretch(changed, first, copy));
                }
                beforeWrite.accept("seal " + next);
                renewed.seal(step);
                beforeWrite.accept("rename " + next);
                SwapText.move(next, with(STATE));
            } catch (IOException | RuntimeException e) {
                renewed.close();
                throw e;
            }
            state.close();
            state = renewed;
        } catch (IOException e) {
            throw SwapFolder.failure("update", next, e);
        }
    }

    @Override
    public void close() {
        state.close();
        gradient.close();
    }
}
