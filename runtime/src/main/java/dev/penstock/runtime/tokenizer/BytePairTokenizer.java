package dev.penstock.runtime.tokenizer;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.MalformedInputException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Byte-level byte-pair encoding of a {@code vocab.json} and a {@code merges.txt}, as GPT-2 and its
 * relatives have them: GPT-2's cut into words, another vocabulary. Text that spells a special token
 * is encoded as text.
 */
final class BytePairTokenizer extends FileTokenizer {
    static final String VOCABULARY = "vocab.json";
    static final String MERGES = "merges.txt";

    private static final String ADDED = "added_tokens.json";
    private static final String CONFIG = "tokenizer_config.json";

    /** Those that cut words as GPT-2 does. */
    private static final Set<String> CLASSES =
            Set.of("GPT2", "Roberta", "Bart", "Longformer", "LED", "OPT", "GPTNeoX", "Blenderbot");

    /** From here on a text has words that come again. */
    private static final int LONG_TEXT = 1_000;

    private final int[] ofByte;
    private final WordMerger merger;

    private BytePairTokenizer(String name, Known known, TokenTable vocabulary, MergeTable merges) {
        super(name, known);
        this.ofByte =
                IntStream.range(0, 256)
                        .map(value -> vocabulary.id("" + ByteSymbols.of(value)))
                        .toArray();
        this.merger = new WordMerger(merges);
    }

    /**
     * Reads both files.
     *
     * @param name what the tokenizer is called
     * @param folder where they are
     * @throws TokenizerFileException if one is missing or damaged, they do not belong together, or
     *     they are of a tokenizer that cuts words in another way
     */
    static BytePairTokenizer open(String name, Path folder) {
        TokenTable vocabulary = vocabulary(folder);
        Path file = folder.resolve(VOCABULARY);
        requireBytes(file, vocabulary);
        Path mergesFile = folder.resolve(MERGES);
        MergeTable merges = merges(mergesFile, vocabulary);
        int end = EndOfText.of(file, vocabulary);
        var known =
                new Known(
                        Fingerprint.of(List.of(file, mergesFile), "end " + end),
                        bytes(vocabulary),
                        end,
                        OptionalInt.of(end),
                        EndOfText.beginning(file, vocabulary));
        return new BytePairTokenizer(name, known, vocabulary, merges);
    }

    private static byte[] @Nullable [] bytes(TokenTable vocabulary) {
        byte[] @Nullable [] bytes = new byte[vocabulary.size()][];
        for (int id = 0; id < bytes.length; id++) {
            String token = vocabulary.token(id);
            bytes[id] = token == null ? null : ByteSymbols.bytes(token);
        }
        return bytes;
    }

    /** Reads the tokens alone, those that were added later included. */
    static TokenTable vocabulary(Path folder) {
        requireSameWords(folder);
        Path file = folder.resolve(VOCABULARY);
        TokenTable vocabulary = new TokenTable(file);
        JsonFiles.read(file, JsonFiles.numbered(file, vocabulary));
        Path added = folder.resolve(ADDED);
        if (Files.exists(added)) {
            JsonFiles.read(added, JsonFiles.numbered(added, vocabulary));
        }
        vocabulary.requireFewUnused();
        return vocabulary;
    }

    private static void requireSameWords(Path folder) {
        Path file = folder.resolve(CONFIG);
        JsonNode config = JsonFiles.readIfThere(file);
        String type = config.path("tokenizer_class").asText();
        String bare = type.replaceFirst("Tokenizer(Fast)?$", "");
        if (!bare.isEmpty() && !bare.equals("PreTrained") && !CLASSES.contains(bare)) {
            throw new TokenizerFileException(
                    file,
                    "a tokenizer_class that cuts words as GPT-2 does, for " + VOCABULARY,
                    type,
                    "use its tokenizer.json");
        }
        if (config.path("add_prefix_space").asBoolean()) {
            throw new TokenizerFileException(
                    file,
                    "add_prefix_space = false, for " + VOCABULARY,
                    "true",
                    "use its tokenizer.json");
        }
    }

    private static void requireBytes(Path file, TokenTable vocabulary) {
        List<String> missing =
                IntStream.range(0, 256)
                        .mapToObj(value -> "" + ByteSymbols.of(value))
                        .filter(symbol -> vocabulary.id(symbol) == null)
                        .toList();
        if (!missing.isEmpty()) {
            throw new TokenizerFileException(
                    file,
                    "a token for each of the 256 bytes, as byte-level encodings have",
                    "none for %d of them, such as '%s'"
                            .formatted(missing.size(), missing.getFirst()),
                    "use its tokenizer.json if it is of another kind");
        }
    }

    private static MergeTable merges(Path file, TokenTable vocabulary) {
        List<String> lines = lines(file);
        MergeTable merges = new MergeTable(lines.size());
        int rank = 0;
        for (int i = 0; i < lines.size(); i++) {
            String line = lines.get(i);
            if (line.startsWith("#version") || line.isBlank()) {
                continue;
            }
            int space = line.indexOf(' ');
            if (space <= 0 || space != line.lastIndexOf(' ') || space == line.length() - 1) {
                throw badMerge(file, i, "two tokens with a space between", "'" + line + "'");
            }
            String left = line.substring(0, space);
            String right = line.substring(space + 1);
            merges.put(
                    id(file, i, left, vocabulary),
                    id(file, i, right, vocabulary),
                    rank++,
                    id(file, i, left + right, vocabulary));
        }
        return merges;
    }

    private static List<String> lines(Path file) {
        JsonFiles.requireSize(file);
        try {
            return Files.readAllLines(file, StandardCharsets.UTF_8);
        } catch (MalformedInputException e) {
            throw new TokenizerFileException(
                    file, "UTF-8", "something else", "the file is damaged");
        } catch (IOException e) {
            throw JsonFiles.unreadable(file, e);
        }
    }

    private static int id(Path file, int line, String token, TokenTable vocabulary) {
        Integer id = vocabulary.id(token);
        if (id == null) {
            throw badMerge(file, line, "tokens of " + VOCABULARY, "'" + token + "'");
        }
        return id;
    }

    private static TokenizerFileException badMerge(
            Path file, int line, String expected, String got) {
        return new TokenizerFileException(
                file,
                "%s in line %d".formatted(expected, line + 1),
                got,
                "the file is torn, or belongs to another vocabulary");
    }

    @Override
    public int[] encode(String text) {
        var tokens = new GrowingInts(text.length() / 3 + 8);
        if (text.length() < LONG_TEXT) {
            Gpt2Words.forEach(text, word -> tokens.addAll(merge(word)));
        } else {
            Map<String, int[]> known = new HashMap<>();
            Gpt2Words.forEach(
                    text, word -> tokens.addAll(known.computeIfAbsent(word, this::merge)));
        }
        return tokens.toArray();
    }

    private int[] merge(String word) {
        byte[] utf8 = word.getBytes(StandardCharsets.UTF_8);
        int[] tokens = new int[utf8.length];
        for (int i = 0; i < utf8.length; i++) {
            tokens[i] = ofByte[Byte.toUnsignedInt(utf8[i])];
        }
        return merger.merge(tokens);
    }

    @Override
    public TextPieces pieces(InputStream text) {
        return new Utf8Pieces(text, Utf8Pieces.Cut.AT_INK).encodedBy(this::encode);
    }

    /** Tokens in the order in which they come. */
    private static final class GrowingInts {
        private int[] values;
        private int count;

        GrowingInts(int room) {
            values = new int[room];
        }

        void addAll(int[] more) {
            if (count + more.length > values.length) {
                values = Arrays.copyOf(values, Math.max(count + more.length, 2 * values.length));
            }
            System.arraycopy(more, 0, values, count, more.length);
            count += more.length;
        }

        int[] toArray() {
            return Arrays.copyOf(values, count);
        }
    }
}
