package dev.penstock.runtime.vocabulary;

import com.fasterxml.jackson.databind.JsonNode;
import dev.penstock.runtime.vocabulary.Vocabulary.Kind;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * What of a {@code tokenizer.json} makes a tokenizer one like SentencePiece's, as those of Llama 2
 * and Mistral are: spaces become U+2581, words are not cut apart before they are merged, and a
 * character without a token becomes its bytes. Notes what cannot be said elsewhere.
 */
final class SentencePieces {
    /** How a space is written. */
    static final String SPACE = "\u2581";

    /** What begins and ends a text where no file beside says it. */
    private static final Map<String, String> USUAL = Map.of("bos", "<s>", "eos", "</s>");

    /** Characters of a step that are shown. */
    private static final int BRIEF = 80;

    private final List<String> problems;
    private final List<List<String>> merges = new ArrayList<>();
    private boolean prefixed;
    private boolean spacesReplaced;
    private boolean wordsApart;

    /**
     * Reads it.
     *
     * @param problems where to note them
     */
    SentencePieces(JsonNode root, List<String> problems) {
        this.problems = problems;
        JsonNode model = root.path("model");
        for (JsonNode step : steps(root.path("normalizer"), "normalizers")) {
            normalizer(step);
        }
        for (JsonNode step : steps(root.path("pre_tokenizer"), "pretokenizers")) {
            preTokenizer(step);
        }
        if (!spacesReplaced) {
            problems.add(
                    "expected spaces that become U+2581 (SentencePiece), by a Replace or a"
                            + " Metaspace, got neither");
        }
        if (model.path("ignore_merges").asBoolean()) {
            problems.add("expected ignore_merges false, got true");
        }
        for (String affix : List.of("continuing_subword_prefix", "end_of_word_suffix")) {
            if (!model.path(affix).asText("").isEmpty()) {
                problems.add("expected no %s, got %s".formatted(affix, model.path(affix)));
            }
        }
        for (JsonNode merge : model.path("merges")) {
            merge(merge);
        }
        for (JsonNode token : root.path("added_tokens")) {
            added(token);
        }
    }

    /** The parts of a step that may be a sequence, or be missing. */
    private static List<JsonNode> steps(JsonNode node, String list) {
        List<JsonNode> steps = new ArrayList<>();
        if (node.path("type").asText().equals("Sequence")) {
            for (JsonNode step : node.path(list)) {
                steps.addAll(steps(step, list));
            }
        } else if (!node.isNull() && !node.isMissingNode()) {
            steps.add(node);
        }
        return steps;
    }

    private void normalizer(JsonNode step) {
        String type = step.path("type").asText();
        if (type.equals("Prepend") && step.path("prepend").asText().equals(SPACE)) {
            prefixed = true;
        } else if (type.equals("Replace")
                && step.path("pattern").path("String").asText().equals(" ")
                && step.path("content").asText().equals(SPACE)) {
            spacesReplaced = true;
        } else {
            String text = step.toString();
            problems.add(
                    "expected a normalizer of Prepend and Replace with U+2581, got "
                            + text.substring(0, Math.min(BRIEF, text.length())));
        }
    }

    private void preTokenizer(JsonNode step) {
        if (!step.path("type").asText().equals("Metaspace")
                || !step.path("replacement").asText().equals(SPACE)
                || prefixed) {
            problems.add(
                    "expected no pre_tokenizer, or a Metaspace with U+2581 and no Prepend, got "
                            + step.path("type"));
            return;
        }
        boolean before = step.path("add_prefix_space").asBoolean(true); // the older word for it
        prefixed = before && !step.path("prepend_scheme").asText().equals("never");
        spacesReplaced = true;
        wordsApart = step.path("split").asBoolean(true);
    }

    private void merge(JsonNode merge) {
        List<String> parts = new ArrayList<>();
        if (merge.isArray()) {
            merge.forEach(part -> parts.add(part.asText()));
        } else {
            parts.addAll(List.of(merge.asText().split(" ", -1)));
        }
        if (parts.size() == 2) {
            merges.add(parts);
        } else {
            problems.add("expected merges of two tokens, got " + merge);
        }
    }

    private void added(JsonNode token) {
        boolean special = token.path("special").asBoolean();
        boolean spaces = token.path("lstrip").asBoolean() || token.path("rstrip").asBoolean();
        boolean inNormalized = token.path("normalized").asBoolean(!special) && prefixed;
        if (spaces || token.path("single_word").asBoolean() || (!special && inNormalized)) {
            problems.add(
                    "expected added tokens that stand for their text alone (lstrip, rstrip,"
                            + " single_word and, unless special, normalized false), got "
                            + token);
        }
    }

    /** Merges as {@link Vocabulary} has them. */
    List<String> merges() {
        return merges.stream().map(parts -> String.join(" ", parts)).toList();
    }

    /**
     * Returns a vocabulary of the same tokens with scores and with the kinds of such pieces.
     *
     * @param read with the kinds that the file says
     * @param processor what is put around a text
     * @param unknown the file's word for the token of text that has none; may be empty
     */
    Vocabulary scored(Vocabulary read, JsonNode processor, String unknown) {
        List<String> tokens = read.tokens();
        List<Kind> kinds = new ArrayList<>(read.kinds());
        for (int number = 0; number < tokens.size(); number++) {
            if (PieceBytes.is(tokens.get(number))) {
                kinds.set(number, Kind.BYTE);
            } else if (tokens.get(number).equals(unknown)) {
                kinds.set(number, Kind.UNKNOWN);
            }
        }
        Map<String, Integer> specials = new HashMap<>(read.specials());
        int number = tokens.indexOf(unknown);
        if (number >= 0) {
            specials.putIfAbsent("unk", number);
        }
        USUAL.forEach(
                (name, text) -> {
                    int usual = tokens.indexOf(text);
                    if (usual >= 0 && specials.putIfAbsent(name, usual) == null) {
                        kinds.set(usual, Kind.CONTROL);
                    }
                });
        Optional.ofNullable(specials.get("unk")).ifPresent(token -> kinds.set(token, Kind.UNKNOWN));
        long bytes = PieceBytes.count(new HashSet<>(tokens));
        if (bytes < 256) {
            problems.add("expected a token for each of 256 bytes, got " + bytes);
        }
        if (!specials.containsKey("eos")) {
            problems.add(
                    "expected an eos_token in tokenizer_config.json, got none: engines would take"
                            + " token 2");
        }
        PieceScores scores = new PieceScores(tokens, merges, wordsApart);
        List<Float> theirs = scores.of(kinds, -(float) merges.size());
        problems.addAll(scores.problems());
        Around around = around(processor, tokens, specials);
        return new Vocabulary(
                "default",
                tokens,
                kinds,
                read.merges(),
                specials,
                around.beginning,
                Optional.of(new Vocabulary.Pieces(theirs, prefixed, around.end)));
    }

    private record Around(boolean beginning, boolean end) {}

    /** Which tokens are put around a text: those that begin and end one, or none. */
    private Around around(JsonNode processor, List<String> tokens, Map<String, Integer> specials) {
        boolean beginning = false;
        boolean end = false;
        for (JsonNode step : steps(processor, "processors")) {
            if (!step.path("type").asText().equals("TemplateProcessing")) {
                problems.add(
                        "expected a post_processor TemplateProcessing, got " + step.path("type"));
                continue;
            }
            List<String> parts = new ArrayList<>();
            for (JsonNode part : step.path("single")) {
                parts.add(part.path("SpecialToken").path("id").asText());
            }
            beginning =
                    parts.size() > 1 && parts.getFirst().equals(text(tokens, specials.get("bos")));
            end = parts.size() > 1 && parts.getLast().equals(text(tokens, specials.get("eos")));
            if (parts.size() != 1 + (beginning ? 1 : 0) + (end ? 1 : 0)) {
                problems.add(
                        "expected a post_processor that puts bos_token before a text, or eos_token"
                                + " after it, got "
                                + step.path("single"));
            }
        }
        return new Around(beginning, end);
    }

    private static String text(List<String> tokens, @Nullable Integer number) {
        return number == null ? "" : tokens.get(number);
    }
}
