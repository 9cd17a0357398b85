package dev.penstock.runtime.data;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;

/**
 * The tokens of a folder that {@link DataPreparation} made, mapped: opening them reads headers and
 * checksums alone, and they are in the page cache, not on the heap. A block of them that is not
 * what was written is found when the first token of it is read; shards of the first version have no
 * checksums of blocks, and of them {@link #verify} alone finds it.
 */
public final class PreparedTokens implements TokenRow {
    private static final ValueLayout.OfChar CHAR =
            ValueLayout.JAVA_CHAR_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfInt INT =
            ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private static final int CHUNK = 1 << 20;

    private final Path folder;
    private final PreparedManifest manifest;
    private final MappedShard[] shards;
    private final long shardTokens;
    private final int tokenBytes;
    private final int vocabulary;

    private PreparedTokens(Path folder, PreparedManifest manifest, List<MappedShard> shards) {
        this.folder = folder;
        this.manifest = manifest;
        this.shards = shards.toArray(MappedShard[]::new);
        this.shardTokens = manifest.plan().shardTokens();
        this.tokenBytes = manifest.tokenBytes();
        this.vocabulary = manifest.plan().tokenizer().vocabulary();
    }

    /** Returns whether a folder has prepared tokens, whole. */
    public static boolean areIn(Path folder) {
        return PreparedManifest.isIn(folder);
    }

    /**
     * Opens them. They are mapped as long as the result is in use.
     *
     * @throws DataException with every shard that is not there or not whole
     */
    public static PreparedTokens open(Path folder) {
        PreparedManifest manifest = PreparedManifest.read(folder);
        List<DataProblem> problems = new ArrayList<>();
        List<MappedShard> shards = new ArrayList<>();
        long tokens = 0;
        for (int index = 0; index < manifest.shards().size(); index++) {
            PreparedManifest.Shard shard = manifest.shards().get(index);
            Path file = folder.resolve(PreparedManifest.shardFile(index));
            tokens += shard.tokens();
            try {
                ShardHeader header = ShardHeader.read(file);
                boolean last = index == manifest.shards().size() - 1;
                if (header != null
                        && header.index() == index
                        && header.plan().equals(manifest.planHash())
                        && header.tokens() == shard.tokens()
                        && header.tokenBytes() == manifest.tokenBytes()
                        && PreparedManifest.Shard.checksum(header.checksum())
                                .equals(shard.checksum())
                        && (last || header.tokens() == manifest.plan().shardTokens())) {
                    shards.add(MappedShard.open(file, header));
                } else {
                    problems.add(damaged(file, "one that is torn or of another preparation"));
                }
            } catch (IOException e) {
                problems.add(damaged(file, String.valueOf(e.getMessage())));
            }
        }
        if (problems.isEmpty() && tokens != manifest.tokens()) {
            problems.add(
                    damaged(
                            folder.resolve(PreparedManifest.FILE),
                            "%d tokens in shards of %d".formatted(manifest.tokens(), tokens)));
        }
        if (!problems.isEmpty()) {
            throw new DataException(problems.subList(0, Math.min(Corpus.SHOWN, problems.size())));
        }
        return new PreparedTokens(folder, manifest, shards);
    }

    private static DataProblem damaged(Path file, String got) {
        return new DataProblem(
                "data.source",
                "a whole shard of prepared tokens",
                file + ": " + got,
                "run the same penstock data prepare again, which makes it anew");
    }

    /** What a token that cannot be right is told with: the header alone does not show it. */
    static DataException damagedTokens(Path file, String got) {
        return new DataException(
                List.of(
                        new DataProblem(
                                "data.source",
                                "the tokens that were prepared",
                                file + ": " + got,
                                "it is damaged: delete the file and run the same penstock data"
                                        + " prepare again")));
    }

    /** Returns the tokenizer's name or path at the time. */
    public String tokenizer() {
        return manifest.plan().tokenizer().name();
    }

    /** Returns the tokenizer's fingerprint. */
    public String fingerprint() {
        return manifest.plan().tokenizer().fingerprint();
    }

    /** Returns how many different tokens there may be. */
    public int vocabulary() {
        return vocabulary;
    }

    /** Returns how many documents they are of. */
    public long documents() {
        return manifest.documents();
    }

    /** Returns how many files they are in. */
    public int shards() {
        return shards.length;
    }

    @Override
    public long size() {
        return manifest.tokens();
    }

    @Override
    public int get(long index) {
        MappedShard shard = shards[(int) (index / shardTokens)];
        long at = index % shardTokens * tokenBytes;
        return token(shard, shard.checked(at, tokenBytes), at);
    }

    @Override
    public void copy(long first, int[] target, int offset, int count) {
        for (int done = 0; done < count; ) {
            MappedShard shard = shards[(int) ((first + done) / shardTokens)];
            long from = (first + done) % shardTokens;
            int here = (int) Math.min(count - done, shardTokens - from);
            MemorySegment tokens = shard.checked(from * tokenBytes, (long) here * tokenBytes);
            for (int i = 0; i < here; i++) {
                target[offset + done + i] = token(shard, tokens, (from + i) * tokenBytes);
            }
            done += here;
        }
    }

    private int token(MappedShard shard, MemorySegment tokens, long at) {
        int token = tokenBytes == 2 ? tokens.get(CHAR, at) : tokens.get(INT, at);
        if (token < 0 || token >= vocabulary) {
            throw damagedTokens(
                    shard.file(),
                    "token %d, of %d, at offset %d"
                            .formatted(token, vocabulary, ShardHeader.BYTES + at));
        }
        return token;
    }

    /**
     * Reads everything.
     *
     * @throws DataException with every shard whose tokens are not those that were written
     */
    public void verify() {
        List<DataProblem> problems = new ArrayList<>();
        for (int index = 0; index < shards.length; index++) {
            CRC32C crc = new CRC32C();
            MemorySegment shard = shards[index].unchecked();
            for (long at = 0; at < shard.byteSize(); at += CHUNK) {
                long bytes = Math.min(CHUNK, shard.byteSize() - at);
                crc.update(shard.asSlice(at, bytes).asByteBuffer());
            }
            String checksum = PreparedManifest.Shard.checksum((int) crc.getValue());
            String expected = manifest.shards().get(index).checksum();
            if (!checksum.equals(expected)) {
                problems.add(
                        new DataProblem(
                                "DIR",
                                "tokens with checksum " + expected,
                                "%s with %s"
                                        .formatted(
                                                folder.resolve(PreparedManifest.shardFile(index)),
                                                checksum),
                                "delete the file and run the same penstock data prepare again"));
            }
        }
        if (!problems.isEmpty()) {
            throw new DataException(problems);
        }
    }
}
