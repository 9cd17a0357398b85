package dev.penstock.runtime.model.swap;

import dev.penstock.actors.collective.Collective;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.OptimizerState;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/** A group in two files: its state, of which every update makes another, and its gradient. */
final class FiledGroup implements SwappedGroup, AutoCloseable {
    static final String STATE = ".state";
    static final String GRADIENT = ".grad";
    private static final String NEXT = ".next";

    /**
     * What the groups of a folder share.
     *
     * @param room what an update works in
     * @param loads reads files beside what computes
     * @param beforeWrite told what is about to be written
     * @param dropsPages see {@link dev.penstock.runtime.model.shape.SwapSettings}
     * @param loadNanos is told what loads take
     * @param leaveNanos is told what gradients take that leave the memory
     */
    record Shared(
            UpdateRoom room,
            Executor loads,
            Consumer<String> beforeWrite,
            boolean dropsPages,
            AtomicLong loadNanos,
            AtomicLong leaveNanos) {
        /** Runs a task behind those that were begun before. */
        CompletableFuture<Void> begin(AtomicLong nanos, Runnable task) {
            return CompletableFuture.runAsync(
                    () -> {
                        long begun = System.nanoTime();
                        task.run();
                        nanos.addAndGet(System.nanoTime() - begun);
                    },
                    loads);
        }

        SwapFile.Use ofState() {
            return new SwapFile.Use(false, dropsPages);
        }

        SwapFile.Use ofGradient() {
            return new SwapFile.Use(true, dropsPages);
        }
    }

    private final Path path;
    private final long elements;
    private final OptimizerState form;
    private final Shared shared;
    private final SwapFile gradient;
    private SwapFile state;

    /**
     * @param kept whether the files are those of an earlier process
     */
    FiledGroup(Path path, long elements, OptimizerState form, Shared shared, boolean kept) {
        this.path = path;
        this.elements = elements;
        this.form = form;
        this.shared = shared;
        state = file(STATE, stateParts(), shared.ofState(), kept);
        try {
            gradient = file(GRADIENT, List.of(elements * Float.BYTES), shared.ofGradient(), kept);
        } catch (RuntimeException e) {
            state.close();
            throw e;
        }
    }

    /** Parameters and two moments. */
    private List<Long> stateParts() {
        long moments = form.bytes(elements);
        return List.of(elements * Float.BYTES, moments, moments);
    }

    private SwapFile file(String suffix, List<Long> parts, SwapFile.Use use, boolean kept) {
        Path file = with(suffix);
        long bytes = parts.stream().mapToLong(Long::longValue).sum();
        try {
            SwapFile opened = kept ? SwapFile.open(file, use) : SwapFile.create(file, parts, use);
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
        seal(state, STATE, SwapState.FIRST);
    }

    private void seal(SwapFile file, String suffix, long step) {
        shared.beforeWrite().accept(path + suffix);
        try {
            file.seal(step);
        } catch (IOException e) {
            throw SwapFolder.failure("write", with(suffix), e);
        }
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
    public void clearGradient() {
        gradient.clear();
    }

    @Override
    public void gradientIsComplete() {
        var _ = shared.begin(shared.leaveNanos(), gradient::leave);
    }

    @Override
    public long step() {
        return state.step();
    }

    @Override
    public Collective load(Tensor into) {
        SwapFile from = state;
        var done = shared.begin(shared.loadNanos(), () -> from.read(0, into.segment()));
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
                return "load of " + from.name();
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

    @Override
    public void sealGradient(long step) {
        seal(gradient, GRADIENT, step);
    }

    @Override
    public void renew(long step, Consumer<Stretch> update) {
        Path next = with(NEXT);
        try {
            shared.beforeWrite().accept(next.toString());
            SwapFile renewed = SwapFile.create(next, stateParts(), shared.ofState());
            try (SwapFile.Reading master = state.new Reading(0);
                    SwapFile.Reading m = state.new Reading(1);
                    SwapFile.Reading v = state.new Reading(2);
                    SwapFile.Reading sum = gradient.new Reading(0);
                    SwapFile.Writing writing = renewed.new Writing()) {
                for (long first = 0; first < elements; first += UpdateRoom.STRETCH) {
                    int count = (int) Math.min(UpdateRoom.STRETCH, elements - first);
                    UpdateRoom room = shared.room().first(count, form);
                    master.read(room.state().master().segment());
                    m.read(room.state().m().segment());
                    v.read(room.state().v().segment());
                    sum.read(room.gradient().segment());
                    update.accept(new Stretch(room.state(), first, room.gradient()));
                    writing.write(0, room.state().master().segment());
                    writing.write(1, room.state().m().segment());
                    writing.write(2, room.state().v().segment());
                }
                shared.beforeWrite().accept("seal " + next);
                writing.seal(step);
                shared.beforeWrite().accept("rename " + next);
                renewed.replace(with(STATE));
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
