package dev.penstock.runtime.serve;

import com.fasterxml.jackson.databind.JsonNode;
import dev.penstock.runtime.chat.ChatMessage;
import dev.penstock.runtime.chat.TemplateException;
import dev.penstock.runtime.inference.TextRequest;
import dev.penstock.runtime.model.generation.Sampling;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * Reads requests in OpenAI's protocol. What would change the answer and is not supported is
 * refused; what is unknown is ignored, as clients send much.
 */
final class RequestReader {
    private static final int MOST_PROMPTS = 64;
    private static final int MOST_CHOICES = 16;
    private static final int MOST_STOPS = 16;
    private static final int LONGEST_STOP = 1_000;
    private static final int MOST_MESSAGES = 10_000;
    private static final int MOST_LIKELIEST = 20;
    private static final double HOTTEST = 100;

    /** OpenAI's default for completions. */
    private static final int USUAL_TOKENS = 16;

    /** No tokenizer has longer tokens: what has more characters has too many tokens. */
    private static final int TOKEN_CHARACTERS = 256;

    private static final Set<String> ROLES =
            Set.of("system", "developer", "user", "assistant", "tool", "function");

    private final ServedModel model;
    private final SecureRandom seeds = new SecureRandom();

    RequestReader(ServedModel model) {
        this.model = model;
    }

    /**
     * Reads a request for completions.
     *
     * @throws ApiException if it cannot be served
     */
    TextOrder completion(RequestFields fields) {
        requireModel(fields);
        fields.requireUnsaid("suffix", "\"\"");
        fields.requireUnsaid("echo", "false");
        fields.requireUnsaid("best_of", "1");
        OptionalInt likeliest = likeliest(fields.number("logprobs", 0, MOST_LIKELIEST));
        List<int[]> prompts = prompts(fields);
        int most = prompts.stream().mapToInt(prompt -> prompt.length).max().orElseThrow();
        requireContext(most, "prompt");
        int count =
                fields.number("max_tokens", 1, Integer.MAX_VALUE)
                        .orElse(Math.min(USUAL_TOKENS, model.tokens() - most));
        return order(fields, prompts, count, List.of(), "", likeliest);
    }

    /**
     * Reads a request for an answer in a conversation.
     *
     * @throws ApiException if it cannot be served
     */
    TextOrder chat(RequestFields fields) {
        requireModel(fields);
        fields.requireUnsaid("tools");
        fields.requireUnsaid("functions");
        OptionalInt likeliest = likeliestOfChat(fields);
        fields.requireUnsaid("response_format", "{\"type\":\"text\"}");
        int[] prompt = encoded(messages(fields));
        requireContext(prompt.length, "messages");
        int count =
                fields.number("max_completion_tokens", 1, Integer.MAX_VALUE)
                        .or(() -> fields.number("max_tokens", 1, Integer.MAX_VALUE))
                        .orElse(model.tokens() - prompt.length);
        String end = model.template().end();
        return order(fields, List.of(prompt), count, stops(), end.isBlank() ? end : "", likeliest);
    }

    private static OptionalInt likeliest(Optional<Integer> asked) {
        return asked.stream().mapToInt(number -> number).findFirst();
    }

    /** How many is only to be said where any are wanted. */
    private static OptionalInt likeliestOfChat(RequestFields fields) {
        Optional<Integer> count = fields.number("top_logprobs", 0, MOST_LIKELIEST);
        if (fields.flag("logprobs")) {
            return OptionalInt.of(count.orElse(0));
        }
        if (count.orElse(0) > 0) {
            throw ApiException.badValue(
                    "top_logprobs", "logprobs to be true with it", "" + count.get());
        }
        return OptionalInt.empty();
    }

    private void requireModel(RequestFields fields) {
        Optional<String> name = fields.text("model");
        if (name.isPresent() && !name.get().equals(model.name())) {
            throw noModel(name.get());
        }
    }

    /** The answer to who asks for another model. */
    ApiException noModel(String name) {
        String shown = name.length() <= 80 ? name : "one of %d characters".formatted(name.length());
        return new ApiException(
                404,
                "model_not_found",
                "model",
                "model: expected %s, got %s".formatted(model.name(), shown));
    }

    private TextOrder order(
            RequestFields fields,
            List<int[]> prompts,
            int count,
            List<String> moreStops,
            String closing,
            OptionalInt likeliest) {
        fields.requireUnsaid("logit_bias");
        fields.requireUnsaid("presence_penalty", "0", "0.0");
        fields.requireUnsaid("frequency_penalty", "0", "0.0");
        int choices = fields.number("n", 1, MOST_CHOICES).orElse(1);
        int most = prompts.stream().mapToInt(prompt -> prompt.length).max().orElseThrow();
        if (count > model.tokens() - most) {
            throw new ApiException(
                    400,
                    "context_length_exceeded",
                    "max_tokens",
                    "max_tokens: expected at most %d after a prompt of %d tokens, got %d; texts have at most %d tokens here"
                            .formatted(model.tokens() - most, most, count, model.tokens()));
        }
        Sampling sampling = sampling(fields);
        List<TextRequest> texts = new ArrayList<>();
        for (int[] prompt : prompts) {
            for (int choice = 0; choice < choices; choice++) {
                texts.add(
                        new TextRequest(
                                prompt,
                                count,
                                sampling,
                                texts.size(),
                                model.tokenizer().endOfText(),
                                likeliest));
            }
        }
        return new TextOrder(
                texts,
                prompts.stream().mapToInt(prompt -> prompt.length).sum(),
                stops(fields, moreStops),
                closing,
                likeliest.isPresent(),
                fields.flag("stream"),
                usage(fields));
    }

    private Sampling sampling(RequestFields fields) {
        double topP = fields.fraction("top_p", 0, 1, 1);
        return new Sampling(
                fields.fraction("temperature", 0, HOTTEST, 1),
                fields.number("top_k", 0, Integer.MAX_VALUE).orElse(0),
                Math.max(topP, Double.MIN_VALUE), // of 0, the likeliest token alone
                fields.longNumber("seed").orElseGet(seeds::nextLong));
    }

    private static List<String> stops(RequestFields fields, List<String> more) {
        List<String> stops = new ArrayList<>(fields.texts("stop", MOST_STOPS));
        for (String stop : stops) {
            if (stop.isEmpty() || stop.length() > LONGEST_STOP) {
                throw ApiException.badValue(
                        "stop",
                        "texts of 1 to %d characters".formatted(LONGEST_STOP),
                        "one of %d".formatted(stop.length()));
            }
        }
        stops.addAll(more);
        return stops;
    }

    private static boolean usage(RequestFields fields) {
        Optional<JsonNode> options = fields.value("stream_options");
        if (options.isPresent() && !options.get().isObject()) {
            throw ApiException.badValue(
                    "stream_options", "an object", RequestFields.shown(options.get()));
        }
        return options.isPresent() && new RequestFields(options.get()).flag("include_usage");
    }

    /** A text, tokens, or a list of either. */
    private List<int[]> prompts(RequestFields fields) {
        JsonNode node =
                fields.value("prompt")
                        .orElseThrow(
                                () -> ApiException.badValue("prompt", "a text or tokens", "none"));
        if (node.isTextual()) {
            return List.of(encode("prompt", RequestFields.text("prompt", node)));
        }
        if (!node.isArray() || node.isEmpty()) {
            throw ApiException.badValue(
                    "prompt", "a text, tokens, or a list of them", RequestFields.shown(node));
        }
        if (node.get(0).isNumber()) {
            return List.of(tokens(node));
        }
        if (node.size() > MOST_PROMPTS) {
            throw ApiException.badValue(
                    "prompt",
                    "at most %d prompts".formatted(MOST_PROMPTS),
                    RequestFields.shown(node));
        }
        return node.valueStream()
                .map(
                        entry ->
                                entry.isArray()
                                        ? tokens(entry)
                                        : encode("prompt", RequestFields.text("prompt", entry)))
                .toList();
    }

    private int[] tokens(JsonNode list) {
        if (list.isEmpty()) {
            throw ApiException.badValue("prompt", "1 token or more", "none");
        }
        requireContext(list.size(), "prompt");
        return list.valueStream()
                .mapToInt(
                        node -> {
                            if (!node.isIntegralNumber() || !node.canConvertToInt()) {
                                throw ApiException.badValue(
                                        "prompt", "tokens", RequestFields.shown(node));
                            }
                            return requireKnown("prompt", node.intValue());
                        })
                .toArray();
    }

    private int requireKnown(String param, int token) {
        if (token < 0 || token >= model.vocabulary()) {
            throw ApiException.badValue(
                    param,
                    "tokens from 0 to %d, which the model knows".formatted(model.vocabulary() - 1),
                    "" + token);
        }
        return token;
    }

    /** An empty text begins as a document does. */
    private int[] encode(String param, String text) {
        if (text.length() > (long) TOKEN_CHARACTERS * model.context()) {
            throw tooLong(param, "%,d characters".formatted(text.length()));
        }
        int[] tokens =
                text.isEmpty()
                        ? new int[] {model.tokenizer().documentSeparator()}
                        : model.tokenizer().encode(text);
        IntStream.of(tokens).forEach(token -> requireKnown(param, token));
        return tokens;
    }

    /** A prompt that leaves room for a token. */
    private void requireContext(int tokens, String param) {
        if (tokens > Math.min(model.context(), model.tokens() - 1)) {
            throw tooLong(param, "%d".formatted(tokens));
        }
    }

    private ApiException tooLong(String param, String got) {
        return new ApiException(
                400,
                "context_length_exceeded",
                param,
                "%s: expected at most %d tokens, got %s"
                        .formatted(param, Math.min(model.context(), model.tokens() - 1), got));
    }

    /** What ends an answer, apart from the model's end-of-text token. */
    private List<String> stops() {
        Tokenizer tokenizer = model.tokenizer();
        return model.template()
                .ends(
                        tokenizer.endOfText().isPresent()
                                ? ""
                                : tokenizer.decode(new int[] {tokenizer.documentSeparator()}));
    }

    /** Part by part, as the chats of a training run are. */
    private int[] encoded(List<ChatMessage> messages) {
        List<String> parts;
        try {
            parts = model.template().promptParts(messages);
        } catch (TemplateException e) {
            throw new ApiException(400, "invalid_value", "messages", "messages: " + e.getMessage());
        }
        long characters = parts.stream().mapToLong(String::length).sum();
        if (characters > (long) TOKEN_CHARACTERS * model.context()) {
            throw tooLong("messages", "%,d characters".formatted(characters));
        }
        return parts.isEmpty()
                ? encode("messages", "")
                : parts.stream()
                        .flatMapToInt(part -> IntStream.of(encode("messages", part)))
                        .toArray();
    }

    private static List<ChatMessage> messages(RequestFields fields) {
        JsonNode list =
                fields.value("messages")
                        .filter(node -> node.isArray() && !node.isEmpty())
                        .orElseThrow(
                                () ->
                                        ApiException.badValue(
                                                "messages",
                                                "a list of 1 message or more",
                                                fields.value("messages")
                                                        .map(RequestFields::shown)
                                                        .orElse("none")));
        if (list.size() > MOST_MESSAGES) {
            throw ApiException.badValue(
                    "messages",
                    "at most %d messages".formatted(MOST_MESSAGES),
                    RequestFields.shown(list));
        }
        return IntStream.range(0, list.size()).mapToObj(i -> message(i, list.get(i))).toList();
    }

    private static ChatMessage message(int index, JsonNode node) {
        String place = "messages[%d]".formatted(index);
        if (!node.isObject()) {
            throw ApiException.badValue(place, "an object", RequestFields.shown(node));
        }
        var fields = new RequestFields(node);
        String role = fields.text("role").orElse("");
        if (!ROLES.contains(role)) {
            throw ApiException.badValue(
                    place + ".role",
                    "system, user or assistant",
                    RequestFields.shown(node.path("role")));
        }
        JsonNode content =
                fields.value("content")
                        .orElseThrow(
                                () -> ApiException.badValue(place + ".content", "a text", "none"));
        return new ChatMessage(role, content(place, content));
    }

    /** A text, or parts of type text, which follow each other. */
    private static String content(String place, JsonNode node) {
        String name = place + ".content";
        if (!node.isArray()) {
            return RequestFields.text(name, node);
        }
        var text = new StringBuilder();
        for (JsonNode part : node) {
            if (!part.path("type").asText("").equals("text")) {
                throw ApiException.badValue(
                        name, "parts of type text", RequestFields.shown(part.path("type")));
            }
            text.append(RequestFields.text(name, part.path("text")));
        }
        return text.toString();
    }
}
