package dev.penstock.runtime.model.swap;

import dev.penstock.actors.collective.Collective;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.OptimizerState;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/**
 * A group in two files: its state, of which every update makes another, and its gradient. Replicas
 * that take steps alone have a third one for the outer state, of which every turn makes another.
 */
final class FiledGroup implements SwappedGroup, AutoCloseable {
    static final String STATE = ".state";
    static final String GRADIENT = ".grad";
    static final String OUTER = ".outer";
    private static final String OF_OUTER = " outer";

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
        /**
         * Creates a file or opens one that an earlier process left.
         *
         * @throws DeviceException if that is not possible, or it is of another size
         */
        SwapFile file(Path file, List<Long> parts, SwapFile.Use use, boolean kept) {
            long bytes = parts.stream().mapToLong(Long::longValue).sum();
            try {
                SwapFile opened =
                        kept ? SwapFile.open(file, parts, use) : SwapFile.create(file, parts, use);
                if (opened.bytes() != bytes) {
                    opened.close();
                    throw new DeviceException(
                            "swap %s: expected %,d bytes of this run's model, got %,d; delete the folder to begin anew"
                                    .formatted(file, bytes, opened.bytes()));
                }
                return opened;
            } catch (NoSuchFileException e) {
                throw new DeviceException(
                        "swap %s: expected the file that an earlier process left, but it is gone; delete %s to go on from the newest checkpoint"
                                .formatted(file, file.getParent()),
                        e);
            } catch (IOException e) {
                throw SwapFolder.failure("begin", file, e);
            }
        }

        /** Declares a file valid; durable when this returns. */
        void seal(SwapFile file, SwapFile.Stamp stamp) {
            beforeWrite.accept(file.name());
            try {
                file.seal(stamp);
            } catch (IOException e) {
                throw SwapFolder.failure("write", Path.of(file.name()), e);
            }
        }

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
    private final boolean kept;
    private SwapFile state;
    private @Nullable SwapFile outer;
    private boolean loadsOuter;

    /**
     * @param kept whether the files are those of an earlier process
     */
    FiledGroup(Path path, long elements, OptimizerState form, Shared shared, boolean kept) {
        this.path = path;
        this.elements = elements;
        this.form = form;
        this.shared = shared;
        this.kept = kept;
        state = file(STATE, stateParts(), shared.ofState());
        try {
            gradient = file(GRADIENT, List.of(elements * Float.BYTES), shared.ofGradient());
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

    private SwapFile file(String suffix, List<Long> parts, SwapFile.Use use) {
        return shared.file(with(suffix), parts, use, kept);
    }

    private Path with(String suffix) {
        return path.resolveSibling(path.getFileName() + suffix);
    }

    /** One line for the list of groups. */
    String words() {
        return "%s %d%s".formatted(path.getFileName(), elements, outer == null ? "" : OF_OUTER);
    }

    /** Returns whether the list of groups says that this one has outer state. */
    static boolean hasOuter(String words) {
        return words.endsWith(OF_OUTER);
    }

    long bytes() {
        return state.bytes() + gradient.bytes() + (outer == null ? 0 : outer.bytes());
    }

    /** The first values are there. */
    void sealFirst() {
        var first = new SwapFile.Stamp(SwapState.FIRST, SwapState.FIRST);
        shared.seal(state, first);
        if (outer != null) {
            shared.seal(outer, first);
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
        SwapFile from = loadsOuter ? outerFile() : state;
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
        shared.seal(gradient, new SwapFile.Stamp(step, SwapState.FIRST));
    }

    @Override
    public void renew(long step, Consumer<Stretch> update) {
        state =
                replace(
                        state,
                        STATE,
                        new SwapFile.Stamp(step, state.turn()),
                        List.of(new Part(gradient, 0)),
                        this::stateRoom,
                        (first, room) ->
                                update.accept(
                                        new Stretch(
                                                new State(room.get(0), room.get(1), room.get(2)),
                                                first,
                                                room.get(3))));
    }

    /** For parameters, both moments, and what else is read of the same elements. */
    private List<Tensor> stateRoom(int count) {
        UpdateRoom room = shared.room().first(count, form);
        State parts = room.state();
        return List.of(parts.master(), parts.m(), parts.v(), room.gradient());
    }

    /** For three rows of numbers. */
    private List<Tensor> outerRoom(int count) {
        State parts = shared.room().first(count, OptimizerState.FLOAT32).state();
        return List.of(parts.master(), parts.m(), parts.v());
    }

    @Override
    public void addOuter(boolean momentum) {
        long bytes = elements * Float.BYTES;
        outer = file(OUTER, momentum ? List.of(bytes, bytes) : List.of(bytes), shared.ofState());
    }

    private SwapFile outerFile() {
        return Objects.requireNonNull(outer, "the group has no outer state");
    }

    @Override
    public Outer outer() {
        SwapFile file = outerFile();
        return new Outer(row(file, 0), file.parts() > 1 ? row(file, elements * Float.BYTES) : null);
    }

    @Override
    public void anchorHere() {
        SwapFile anchors = outerFile();
        for (long first = 0; first < elements; first += UpdateRoom.STRETCH) {
            int count = (int) Math.min(UpdateRoom.STRETCH, elements - first);
            MemorySegment room = outerRoom(count).getFirst().segment();
            state.read(first * Float.BYTES, room);
            anchors.write(first * Float.BYTES, room);
        }
    }

    @Override
    public void anchorAfter(long step) {
        if (outerFile().turn() >= step) {
            return;
        }
        int parts = outerFile().parts();
        outer =
                replace(
                        outerFile(),
                        OUTER,
                        new SwapFile.Stamp(step, step),
                        List.of(new Part(state, 0)),
                        count -> outerRoom(count).subList(0, parts + 1),
                        (_, room) -> room.getFirst().segment().copyFrom(room.getLast().segment()));
    }

    @Override
    public void loadOuter(boolean instead) {
        loadsOuter = instead;
    }

    @Override
    public void compare(OwnStep reader) {
        try (var reading = new Readings(List.of(new Part(outerFile(), 0), new Part(state, 0)))) {
            stretches(
                    (first, count) -> {
                        List<Tensor> room = outerRoom(count);
                        reading.read(room);
                        reader.take(first, room.get(0), room.get(1));
                    });
        } catch (IOException e) {
            throw SwapFolder.failure("read", path, e);
        }
    }

    @Override
    public void renewOuter(long turn, OuterStep ofOuter, OwnStep ofOwn) {
        if (outerFile().turn() < turn) {
            boolean momentum = outerFile().parts() > 1;
            outer =
                    replace(
                            outerFile(),
                            OUTER,
                            new SwapFile.Stamp(turn, turn),
                            List.of(),
                            count -> outerRoom(count).subList(0, momentum ? 2 : 1),
                            (first, room) ->
                                    ofOuter.take(
                                            first, room.get(0), momentum ? room.get(1) : null));
        }
        if (state.turn() < turn) {
            state =
                    replace(
                            state,
                            STATE,
                            new SwapFile.Stamp(state.step(), turn),
                            List.of(new Part(outerFile(), 0)),
                            this::stateRoom,
                            (first, room) -> ofOwn.take(first, room.get(3), room.get(0)));
        }
    }

    /** A part of a file. */
    private record Part(SwapFile file, int part) {}

    /** Parts that are read from beginning to end, stretch by stretch. */
    private static final class Readings implements AutoCloseable {
        private final List<SwapFile.Reading> parts = new ArrayList<>();

        Readings(List<Part> opened) throws IOException {
            try {
                for (Part part : opened) {
                    parts.add(part.file().new Reading(part.part()));
                }
            } catch (IOException e) {
                close();
                throw e;
            }
        }

        void read(List<Tensor> rooms) throws IOException {
            for (int part = 0; part < parts.size(); part++) {
                parts.get(part).read(rooms.get(part).segment());
            }
        }

        @Override
        public void close() throws IOException {
            for (SwapFile.Reading part : parts) {
                part.close();
            }
        }
    }

    /** What is done with some elements. */
    private interface Elements {
        void at(long first, int count) throws IOException;
    }

    private void stretches(Elements work) throws IOException {
        for (long first = 0; first < elements; first += UpdateRoom.STRETCH) {
            work.at(first, (int) Math.min(UpdateRoom.STRETCH, elements - first));
        }
    }

    /**
     * Replaces a file: the old one stays until the new one is whole and durable.
     *
     * @param beside what is read with it, and not written
     * @param rooms where so many elements of its parts lie, and behind them those of the parts
     *     beside
     * @param change is told the first element of a stretch that lies there
     */
    private SwapFile replace(
            SwapFile old,
            String suffix,
            SwapFile.Stamp stamp,
            List<Part> beside,
            IntFunction<List<Tensor>> rooms,
            BiConsumer<Long, List<Tensor>> change) {
        Path next = with(suffix + SwapText.NEXT);
        List<Part> read = new ArrayList<>();
        for (int part = 0; part < old.parts(); part++) {
            read.add(new Part(old, part));
        }
        read.addAll(beside);
        try {
            shared.beforeWrite().accept(next.toString());
            SwapFile renewed = SwapFile.create(next, old.partBytes(), shared.ofState());
            try (var reading = new Readings(read);
                    SwapFile.Writing writing = renewed.new Writing()) {
                stretches(
                        (first, count) -> {
                            List<Tensor> room = rooms.apply(count);
                            reading.read(room);
                            change.accept(first, room);
                            for (int part = 0; part < old.parts(); part++) {
                                writing.write(part, room.get(part).segment());
                            }
                        });
                shared.beforeWrite().accept("seal " + next);
                writing.seal(stamp);
                shared.beforeWrite().accept("rename " + next);
                renewed.replace(with(suffix));
            } catch (IOException | RuntimeException e) {
                renewed.close();
                throw e;
            }
            old.close();
            return renewed;
        } catch (IOException e) {
            throw SwapFolder.failure("update", next, e);
        }
    }

    @Override
    public void close() {
        state.close();
        gradient.close();
        if (outer != null) {
            outer.close();
        }
    }
}
