package dev.penstock.runtime.data;

import com.fasterxml.jackson.databind.JsonNode;
import dev.penstock.runtime.chat.ChatMessage;
import dev.penstock.runtime.chat.ChatPart;
import dev.penstock.runtime.chat.ChatTemplate;
import dev.penstock.runtime.chat.TemplateException;
import dev.penstock.runtime.config.reading.NearWord;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A line with the messages of a chat. Its answers, and what is between them, are encoded each for
 * itself: so a model is trained on the tokens that it is given when it is asked.
 */
record ChatDocument(ChatTemplate template, Documents documents) implements LineDocument {
    private static final String MESSAGES = "messages";
    private static final int SHOWN = 40;

    @Override
    public void encode(
            String at, JsonNode line, List<Stretch.Part> parts, List<DataProblem> problems) {
        List<ChatMessage> chat = new ArrayList<>();
        for (JsonNode message : line.path(MESSAGES)) {
            JsonNode role = message.path("role");
            Optional<String> said = said(message.path("content"));
            if (!role.isTextual() || said.isEmpty()) {
                problems.add(notAChat(at, "a message without the texts 'role' and 'content'"));
                return;
            }
            if (template.isKnown() && !ChatMessage.ROLES.contains(role.textValue())) {
                problems.add(unknown(at, role.textValue()));
                return;
            }
            chat.add(new ChatMessage(role.textValue(), said.get()));
        }
        if (chat.isEmpty()) {
            problems.add(notAChat(at, "no '" + MESSAGES + "'"));
            return;
        }
        try {
            boolean begins = true;
            for (ChatPart part : template.parts(chat)) {
                documents.encode(at, begins, part.answer(), part.text(), parts, problems);
                begins = false;
            }
        } catch (TemplateException e) {
            problems.add(
                    new DataProblem(
                            "data.template",
                            "a template that takes the chat",
                            at + ": " + e.getMessage(),
                            "repair the line, or try another template"));
        }
    }

    @Override
    public String otherwise() {
        return "";
    }

    /** A text, or parts of type text, which follow each other, as the server takes them. */
    private static Optional<String> said(JsonNode content) {
        if (content.isTextual()) {
            return Optional.of(content.textValue());
        }
        if (!content.isArray() || content.isEmpty()) {
            return Optional.empty();
        }
        var text = new StringBuilder();
        for (JsonNode part : content) {
            if (!part.path("type").asText("").equals("text") || !part.path("text").isTextual()) {
                return Optional.empty();
            }
            text.append(part.path("text").textValue());
        }
        return Optional.of(text.toString());
    }

    private static DataProblem unknown(String at, String role) {
        return new DataProblem(
                "data.format",
                "roles of a chat (%s)".formatted(String.join(", ", ChatMessage.ROLES)),
                "%s, which has the role '%s'".formatted(at, shortened(role)),
                NearWord.among(ChatMessage.ROLES, role)
                        .map(meant -> "did you mean " + meant + "?")
                        .orElse("repair the line"));
    }

    private static String shortened(String text) {
        return text.length() <= SHOWN ? text : text.substring(0, SHOWN) + "..";
    }

    private static DataProblem notAChat(String at, String got) {
        return new DataProblem(
                "data.format",
                "{\"messages\": [{\"role\": .., \"content\": ..}, ..]} in every line",
                at + ", which has " + got,
                "repair the line");
    }
}
