package dev.penstock.runtime.serve;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.runtime.serve.Generation.Finish;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The objects of an answer, which all name it alike.
 *
 * @param kind of the answer
 * @param id of the answer
 * @param created seconds since 1970
 * @param probabilities writes log-probabilities
 */
record AnswerFormat(
        Kind kind, String id, String model, long created, LogProbabilityFormat probabilities) {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    /** The two endpoints that continue texts. */
    enum Kind {
        COMPLETION("text_completion", "text_completion", "cmpl-"),
        CHAT("chat.completion", "chat.completion.chunk", "chatcmpl-");

        private final String whole;
        private final String part;
        private final String prefix;

        Kind(String whole, String part, String prefix) {
            this.whole = whole;
            this.part = part;
            this.prefix = prefix;
        }

        /** Returns how identifiers of such answers begin. */
        String prefix() {
            return prefix;
        }
    }

    /**
     * A choice of an answer that comes at once.
     *
     * @param tokens with their log-probabilities; null if they are not wanted
     */
    record Choice(String text, Finish finish, @Nullable List<ChosenToken> tokens) {}

    /** Returns a whole answer. */
    ObjectNode whole(List<Choice> choices, int promptTokens, int tokens) {
        ObjectNode answer = head(kind.whole);
        var list = answer.putArray("choices");
        for (int i = 0; i < choices.size(); i++) {
            Choice choice = choices.get(i);
            ObjectNode node = list.addObject().put("index", i);
            if (kind == Kind.CHAT) {
                node.putObject("message")
                        .put("role", "assistant")
                        .put("content", choice.text())
                        .putNull("refusal");
            } else {
                node.put("text", choice.text());
            }
            put(node, choice.tokens());
            node.put("finish_reason", choice.finish().word());
        }
        answer.set("usage", usage(promptTokens, tokens));
        return answer;
    }

    private void put(ObjectNode choice, @Nullable List<ChosenToken> tokens) {
        choice.set("logprobs", tokens == null ? JSON.nullNode() : probabilities.of(kind, tokens));
    }

    /** Returns what comes before all parts of a choice; null if that is nothing. */
    @Nullable ObjectNode opening(int choice) {
        return kind == Kind.CHAT ? delta(choice, "assistant", "", null, null) : null;
    }

    /**
     * Returns a part of an answer that comes as it grows.
     *
     * @param tokens as of a {@link Choice}
     */
    ObjectNode part(
            int choice, String text, @Nullable Finish finish, @Nullable List<ChosenToken> tokens) {
        if (kind == Kind.CHAT) {
            return delta(choice, null, text, finish, tokens);
        }
        ObjectNode answer = head(kind.part);
        ObjectNode node = answer.putArray("choices").addObject();
        node.put("index", choice).put("text", text);
        put(node, tokens);
        node.put("finish_reason", finish == null ? null : finish.word());
        return answer;
    }

    private ObjectNode delta(
            int choice,
            @Nullable String role,
            String text,
            @Nullable Finish finish,
            @Nullable List<ChosenToken> tokens) {
        ObjectNode answer = head(kind.part);
        ObjectNode node = answer.putArray("choices").addObject().put("index", choice);
        ObjectNode delta = node.putObject("delta");
        if (role != null) {
            delta.put("role", role);
        }
        if (role != null || !text.isEmpty()) {
            delta.put("content", text);
        }
        put(node, tokens);
        node.put("finish_reason", finish == null ? null : finish.word());
        return answer;
    }

    /** Returns the last part of an answer: the counts. */
    ObjectNode counts(int promptTokens, int tokens) {
        ObjectNode answer = head(kind.part);
        answer.putArray("choices");
        answer.set("usage", usage(promptTokens, tokens));
        return answer;
    }

    private ObjectNode head(String object) {
        return JSON.objectNode()
                .put("id", id)
                .put("object", object)
                .put("created", created)
                .put("model", model);
    }

    private static ObjectNode usage(int promptTokens, int tokens) {
        return JSON.objectNode()
                .put("prompt_tokens", promptTokens)
                .put("completion_tokens", tokens)
                .put("total_tokens", promptTokens + tokens);
    }

    /** Returns a model as lists of them have it. */
    static ObjectNode model(String name, long created) {
        return JSON.objectNode()
                .put("id", name)
                .put("object", "model")
                .put("created", created)
                .put("owned_by", "penstock");
    }

    /** Returns the list of models, which are one. */
    static ObjectNode models(String name, long created) {
        ObjectNode list = JSON.objectNode().put("object", "list");
        list.putArray("data").add(model(name, created));
        return list;
    }

    static ObjectNode error(ApiException problem) {
        ObjectNode answer = JSON.objectNode();
        answer.putObject("error")
                .put("message", String.valueOf(problem.getMessage()))
                .put("type", problem.type())
                .put("param", problem.param())
                .put("code", problem.code());
        return answer;
    }
}
