package dev.penstock.runtime.data;

import dev.penstock.runtime.data.Stretch.Encoded;
import dev.penstock.runtime.data.Stretch.Part;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.LongConsumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Encodes a corpus once, into a folder of shards that a run maps into its memory. The tokens are
 * those that a run which reads the text itself has, one after the other. A preparation that was
 * killed at any moment continues after its last whole shard, and the files are then the same, byte
 * for byte, as those of one that was not, whatever the number of threads.
 */
public final class DataPreparation {
    private static final String LOCK = ".lock";
    private static final String SHARD = "tokens-\\d{5,9}\\.bin";

    private final Corpus corpus;
    private final Tokenizer tokenizer;
    private final Path folder;
    private final PreparationPlan plan;
    private final String hash;
    private final List<ShardHeader> done = new ArrayList<>();
    private final List<DataProblem> problems = new ArrayList<>();

    private @Nullable ShardWriter shard;
    private long documents;

    /** Tokens that the corpus has before the place that is read. */
    private long position;

    /** Tokens that are in shards. */
    private long written;

    private CorpusPlace stretch = CorpusPlace.START;
    private long stretchPosition;

    /**
     * Checks what is there already.
     *
     * @param folder where the shards go; may hold a part of the same preparation
     * @param shardTokens tokens of a shard
     * @throws DataException if a file of the corpus cannot be read, or the folder holds something
     *     else
     */
    public DataPreparation(Corpus corpus, Tokenizer tokenizer, Path folder, long shardTokens) {
        this.corpus = corpus;
        this.tokenizer = tokenizer;
        this.folder = folder;
        this.plan = PreparationPlan.of(corpus, tokenizer, shardTokens);
        this.hash = plan.hash();
    }

    /**
     * What came of it.
     *
     * @param tokenBytes of a token
     * @param resumed tokens that were there before
     */
    public record Result(
            long tokens, long documents, int shards, int tokenBytes, long bytes, long resumed) {}

    /**
     * Prepares, or continues.
     *
     * @param threads that encode
     * @param progress receives how many bytes of the corpus have been read, about
     * @throws DataException if the corpus has problems, or the folder something else, or another
     *     process prepares there
     */
    public Result prepare(int threads, LongConsumer progress) throws IOException {
        boolean isNew = !Files.exists(folder);
        Files.createDirectories(folder);
        try (FileChannel channel =
                        FileChannel.open(
                                folder.resolve(LOCK),
                                StandardOpenOption.CREATE,
                                StandardOpenOption.WRITE);
                FileLock lock = channel.tryLock()) {
            if (lock == null) {
                throw busy();
            }
            try {
                return prepareAlone(threads, progress);
            } catch (DataException e) {
                leaveNothing(isNew);
                throw e;
            }
        } catch (OverlappingFileLockException e) {
            throw busy();
        }
    }

    /** A refused preparation leaves what was there. */
    private void leaveNothing(boolean isNew) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            if (!isNew || files.anyMatch(file -> !file.endsWith(LOCK))) {
                return;
            }
        }
        Files.deleteIfExists(folder.resolve(LOCK));
        Files.delete(folder);
    }

    private DataException busy() {
        return refused("no other process that prepares there", folder + ", where one does", "");
    }

    private Result prepareAlone(int threads, LongConsumer progress) throws IOException {
        boolean damaged = false;
        if (PreparedManifest.isIn(folder)) {
            Optional<PreparedManifest> there = PreparedManifest.readIfWhole(folder);
            damaged = there.isEmpty();
            if (there.isPresent()) {
                if (!there.get().planHash().equals(hash)) {
                    throw other();
                }
                Optional<Result> whole = resultIfWhole(there.get());
                if (whole.isPresent()) {
                    return whole.get();
                }
            }
        }
        requireOwnFiles();
        requireOwnShards();
        findWholeShards();
        if (damaged && done.isEmpty()) {
            throw refused(
                    "a folder with whole tokens of the same preparation",
                    folder.resolve(PreparedManifest.FILE) + ", which is damaged, without any",
                    "delete this file, or try another folder");
        }
        removeFrom(done.size());
        long resumed = written;
        long[] before = corpus.bytesBefore();
        try {
            corpus.encode(
                    tokenizer,
                    tokenizer.name(),
                    stretch,
                    threads,
                    (start, encoded) -> {
                        progress.accept(before[start.file()] + start.offset());
                        return take(start, encoded);
                    });
            if (!problems.isEmpty()) {
                throw new DataException(problems);
            }
            finishShard(new CorpusPlace(corpus.files().size(), 0, 0, false), 0);
        } finally {
            if (shard != null) {
                shard.close();
            }
        }
        return finish(resumed);
    }

    /** Returns what was made, unless a shard is lost or damaged. */
    private Optional<Result> resultIfWhole(PreparedManifest there) throws IOException {
        try {
            PreparedTokens.open(folder);
            return Optional.of(
                    result(
                            there.tokens(),
                            there.documents(),
                            there.shards().size(),
                            there.tokens()));
        } catch (DataException e) {
            return Optional.empty();
        }
    }

    private Result finish(long resumed) throws IOException {
        if (written == 0) {
            throw new DataException(
                    List.of(
                            new DataProblem(
                                    "data.source",
                                    "text in the files",
                                    "none",
                                    "check the files")));
        }
        List<PreparedManifest.Shard> shards = new ArrayList<>();
        for (ShardHeader header : done) {
            shards.add(
                    new PreparedManifest.Shard(
                            PreparedManifest.shardFile(header.index()),
                            header.tokens(),
                            PreparedManifest.Shard.checksum(header.checksum())));
        }
        new PreparedManifest(
                        PreparedManifest.VERSION,
                        written,
                        documents,
                        plan.tokenBytes(),
                        hash,
                        plan,
                        shards)
                .write(folder);
        return result(written, documents, done.size(), resumed);
    }

    private Result result(long tokens, long documents, int shards, long resumed)
            throws IOException {
        long bytes = 0;
        for (int index = 0; index < shards; index++) {
            bytes += Files.size(folder.resolve(PreparedManifest.shardFile(index)));
        }
        return new Result(tokens, documents, shards, plan.tokenBytes(), bytes, resumed);
    }

    /** Nothing but what a preparation makes may be there: the rest is somebody's. */
    private void requireOwnFiles() throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            Optional<Path> foreign =
                    files.filter(file -> !isOwn(String.valueOf(file.getFileName())))
                            .sorted()
                            .findFirst();
            if (foreign.isPresent()) {
                throw refused(
                        "a folder that is empty or new",
                        foreign.get() + " in it",
                        "try another folder");
            }
        }
    }

    private static boolean isOwn(String name) {
        return name.equals(LOCK)
                || name.startsWith(PreparedManifest.FILE)
                || name.matches(SHARD + "(\\.part)?");
    }

    /**
     * Whatever is to be made anew: a shard of another preparation is not for this one to delete.
     */
    private void requireOwnShards() throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.sorted().toList()) {
                if (!String.valueOf(file.getFileName()).matches(SHARD)) {
                    continue;
                }
                if (!ShardHeader.mayBegin(file)) {
                    throw refused(
                            "a folder that is empty or new",
                            file + " in it, which no preparation made",
                            "try another folder");
                }
                ShardHeader header = ShardHeader.read(file);
                if (header != null && !header.plan().equals(hash)) {
                    throw other();
                }
            }
        }
    }

    /** Finds the shards that are whole, one after the other; what follows them is made anew. */
    private void findWholeShards() throws IOException {
        for (int index = 0; ; index++) {
            ShardHeader header =
                    ShardHeader.read(folder.resolve(PreparedManifest.shardFile(index)));
            if (header != null && header.index() == index && !header.plan().equals(hash)) {
                throw other();
            }
            if (header == null
                    || header.index() != index
                    || (header.tokens() < plan.shardTokens()
                            && header.next().file() < corpus.files().size())) {
                break;
            }
            done.add(header);
            documents += header.documents();
            written += header.tokens();
            stretch = header.next();
            position = written - header.skip();
        }
        stretchPosition = position;
    }

    private void removeFrom(int first) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.toList()) {
                String name = String.valueOf(file.getFileName());
                boolean kept =
                        name.equals(LOCK)
                                || (name.matches(SHARD)
                                        && Integer.parseInt(name.replaceAll("\\D", "")) < first);
                if (!kept) {
                    Files.delete(file);
                }
            }
        }
    }

    private DataException other() {
        return refused(
                "a folder without tokens, or with a part of the same preparation",
                folder + " with tokens of other files or another tokenizer",
                "try another folder, or delete this one");
    }

    private static DataException refused(String expected, String got, String advice) {
        return new DataException(List.of(new DataProblem("--output", expected, got, advice)));
    }

    private boolean take(CorpusPlace start, Encoded encoded) throws IOException {
        stretch = start;
        stretchPosition = position;
        for (DataProblem problem : encoded.problems()) {
            if (problems.size() < Corpus.SHOWN) {
                problems.add(problem);
            }
        }
        if (!problems.isEmpty()) {
            return problems.size() < Corpus.SHOWN; // looks for more of them, and writes nothing
        }
        for (Part part : encoded.parts()) {
            if (part.begins()) {
                documents += position >= written ? 1 : 0;
                if (position > 0) {
                    add(tokenizer.documentSeparator());
                }
            }
            for (int token : part.tokens()) {
                add(token);
            }
        }
        return true;
    }

    private void add(int token) throws IOException {
        position++;
        if (position <= written) {
            return; // in a shard of before
        }
        if (shard == null) {
            Path file = folder.resolve(PreparedManifest.shardFile(done.size()));
            shard = new ShardWriter(file, plan.tokenBytes());
        }
        shard.add(token);
        written++;
        if (shard.tokens() == plan.shardTokens()) {
            finishShard(stretch, position - stretchPosition);
        }
    }

    private void finishShard(CorpusPlace next, long skip) throws IOException {
        if (shard == null) {
            return;
        }
        long before = done.stream().mapToLong(ShardHeader::documents).sum();
        ShardHeader header =
                new ShardHeader(
                        plan.tokenBytes(),
                        plan.tokenizer().vocabulary(),
                        done.size(),
                        shard.tokens(),
                        documents - before,
                        shard.checksum(),
                        hash,
                        next,
                        skip);
        shard.finish(header);
        done.add(header);
        shard = null;
    }
}
