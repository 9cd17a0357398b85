package dev.penstock.runtime.serve;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.runtime.inference.LogProbabilities;
import dev.penstock.runtime.inference.LogProbabilities.Likely;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The field {@code logprobs} of a choice, in the two forms that OpenAI's protocol has. */
record LogProbabilityFormat(Tokenizer tokenizer) {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    /** Returns the field of an answer of this kind. */
    ObjectNode of(AnswerFormat.Kind kind, List<ChosenToken> tokens) {
        return kind == AnswerFormat.Kind.CHAT ? chat(tokens) : completion(tokens);
    }

    private ObjectNode chat(List<ChosenToken> tokens) {
        ObjectNode field = JSON.objectNode();
        ArrayNode content = field.putArray("content");
        for (ChosenToken each : tokens) {
            LogProbabilities chances = each.chances();
            ObjectNode node = entry(chances.token(), chances.logProbability());
            ArrayNode others = node.putArray("top_logprobs");
            for (Likely likely : chances.likeliest()) {
                others.add(entry(likely.token(), likely.logProbability()));
            }
            content.add(node);
        }
        field.putNull("refusal");
        return field;
    }

    private ObjectNode entry(int token, double logProbability) {
        ObjectNode node =
                JSON.objectNode().put("token", text(token)).put("logprob", logProbability);
        ArrayNode bytes = node.putArray("bytes");
        for (byte each : tokenizer.bytes(token)) {
            bytes.add(Byte.toUnsignedInt(each));
        }
        return node;
    }

    private ObjectNode completion(List<ChosenToken> tokens) {
        ObjectNode field = JSON.objectNode();
        ArrayNode texts = field.putArray("tokens");
        ArrayNode chosen = field.putArray("token_logprobs");
        ArrayNode likeliest = field.putArray("top_logprobs");
        ArrayNode offsets = field.putArray("text_offset");
        for (ChosenToken each : tokens) {
            LogProbabilities chances = each.chances();
            texts.add(text(chances.token()));
            chosen.add(chances.logProbability());
            ObjectNode others = likeliest.addObject();
            for (Likely likely : chances.likeliest()) {
                others.put(text(likely.token()), likely.logProbability());
            }
            others.put(text(chances.token()), chances.logProbability());
            offsets.add(each.offset());
        }
        return field;
    }

    /** As OpenAI writes a token that is a part of a character: {@code bytes:\xe2\x82}. */
    private String text(int token) {
        byte[] bytes = tokenizer.bytes(token);
        String whole = decoded(bytes);
        if (whole != null) {
            return whole;
        }
        StringBuilder parts = new StringBuilder("bytes:");
        for (byte each : bytes) {
            parts.append("\\x%02x".formatted(Byte.toUnsignedInt(each)));
        }
        return parts.toString();
    }

    private static @Nullable String decoded(byte[] bytes) {
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
        } catch (CharacterCodingException e) {
            return null;
        }
    }
}
