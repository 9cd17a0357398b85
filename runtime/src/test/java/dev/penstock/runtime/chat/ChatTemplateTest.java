package dev.penstock.runtime.chat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ChatTemplateTest {
    private static final Map<String, Object> TOKENS =
            Map.of("bos_token", "<s>", "eos_token", "</s>");

    @TempDir Path folder;

    /** Texts that transformers' {@code apply_chat_template} wrote. */
    @TestFactory
    Stream<DynamicTest> textsAreThoseOfTransformers() {
        JsonNode recorded = recorded();
        List<DynamicTest> tests = new ArrayList<>();
        for (JsonNode each : recorded.path("cases")) {
            String name = each.path("template").asText();
            boolean prompt = each.path("prompt").asBoolean();
            List<ChatMessage> chat = chat(each.path("messages"));
            String source = recorded.path("templates").path(name).asText();
            tests.add(
                    DynamicTest.dynamicTest(
                            "%s, %d messages%s"
                                    .formatted(name, chat.size(), prompt ? ", and a prompt" : ""),
                            () ->
                                    assertThat(
                                                    ChatTemplate.ofSource(source, TOKENS)
                                                            .render(chat, prompt))
                                            .isEqualTo(each.path("text").asText())));
        }
        return tests.stream();
    }

    private static JsonNode recorded() {
        try {
            return new ObjectMapper()
                    .readTree(Path.of("src/test/resources/chat/rendered.json").toFile());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static List<ChatMessage> chat(JsonNode messages) {
        List<ChatMessage> chat = new ArrayList<>();
        messages.forEach(
                m ->
                        chat.add(
                                new ChatMessage(
                                        m.path("role").asText(), m.path("content").asText())));
        return chat;
    }

    private static final List<ChatMessage> TWO_ANSWERS =
            List.of(
                    new ChatMessage("system", "short"),
                    new ChatMessage("user", "1 + 1?"),
                    new ChatMessage("assistant", "2"),
                    new ChatMessage("user", "sure?"),
                    new ChatMessage("assistant", "yes"));

    @Test
    void answersAreWhatFollowsThePrompt() {
        assertThat(ChatTemplate.of("chatml", null).parts(TWO_ANSWERS))
                .containsExactly(
                        new ChatPart(
                                "<|im_start|>system\nshort<|im_end|>\n<|im_start|>user\n1 +"
                                        + " 1?<|im_end|>\n<|im_start|>assistant\n",
                                false),
                        new ChatPart("2<|im_end|>\n", true),
                        new ChatPart(
                                "<|im_start|>user\nsure?<|im_end|>\n<|im_start|>assistant\n",
                                false),
                        new ChatPart("yes<|im_end|>\n", true));
    }

    @ParameterizedTest
    @CsvSource({"chatml", "llama3", "plain"})
    void partsAreTheWholeText(String name) {
        ChatTemplate template = ChatTemplate.of(name, null);
        String joined =
                template.parts(TWO_ANSWERS).stream()
                        .map(ChatPart::text)
                        .collect(Collectors.joining());

        assertThat(joined).isEqualTo(template.render(TWO_ANSWERS, false));
    }

    @Test
    void aTemplateThatWritesEarlierAnswersInAnotherWayIsRefused() {
        ChatTemplate forgetful =
                ChatTemplate.ofSource(
                        "{% for m in messages %}{% if loop.last or m.role != 'assistant' %}"
                                + "[{{ m.content }}]{% endif %}{% endfor %}",
                        TOKENS);

        assertThatThrownBy(() -> forgetful.parts(TWO_ANSWERS))
                .isInstanceOf(TemplateException.class)
                .hasMessageContaining("its answers cannot be found");
    }

    @Test
    void theTemplateOfATokenizerIsInItsConfigurationOrAFileBeside() throws IOException {
        List<ChatMessage> chat = List.of(new ChatMessage("user", "hi"));
        Files.writeString(
                folder.resolve("tokenizer_config.json"),
                """
                {"bos_token": {"content": "<b>"}, "eos_token": "</e>", "pad_token": null,
                 "chat_template": [{"name": "other", "template": "x"},
                   {"name": "default", "template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"}]}
                """);
        assertThat(ChatTemplate.of("tokenizer", folder).render(chat, false)).isEqualTo("<b>hi</e>");
        assertThat(
                        ChatTemplate.of("tokenizer", folder.resolve("tokenizer.json"))
                                .render(chat, false))
                .isEqualTo("<b>hi</e>");

        Files.writeString(folder.resolve("chat_template.jinja"), "{{ messages[0].role }}\n");
        assertThat(ChatTemplate.of("tokenizer", folder).render(chat, false)).isEqualTo("user");
    }

    @Test
    void aTokenizerWithoutATemplateIsRefused() {
        assertThatThrownBy(() -> ChatTemplate.of("tokenizer", folder))
                .hasMessageContaining("has neither chat_template.jinja nor a chat_template");
        assertThatThrownBy(() -> ChatTemplate.of("tokenizer", null))
                .hasMessageContaining("no files");
    }

    /** Templates that would never end, fill the memory or the stack: they come from strangers. */
    @TestFactory
    Stream<DynamicTest> whatATemplateMayDoIsLimited() {
        String rounds = "{% for m in messages %}".repeat(8);
        String doubled = "{%% set ns = namespace(x='abcd') %%}%s{{ ns.x }}";
        Map<String, String> sources =
                Map.of(
                        "{{ " + "(".repeat(200) + "1" + ")".repeat(200) + " }}",
                        "expected expressions nested at most 100 deep",
                        "{{ " + "(".repeat(20_000) + "1" + ")".repeat(20_000) + " }}",
                        "expected tags of at most 1,000 words and signs, got one of 40,001",
                        "{% if true %}".repeat(20_000) + "{% endif %}".repeat(20_000),
                        "expected blocks nested at most 100 deep",
                        "{{ 1" + " + 1".repeat(20_000) + " }}",
                        "expected tags of at most 1,000 words",
                        rounds + "{% for a in messages[0].content %}" + "{% endfor %}".repeat(9),
                        "expected at most 1,050,000 steps for a chat of 5 messages",
                        doubled.formatted("{% set ns.x = ns.x + ns.x %}".repeat(40)),
                        "expected a text of at most 1,048,",
                        doubled.formatted("{% set ns.x = ns.x.replace('', ns.x) %}".repeat(8)),
                        "expected a text of at most 1,048,",
                        "{% set ns = namespace(x=[1]) %}"
                                + "{% set ns.x = ns.x + ns.x %}".repeat(40),
                        "expected at most 1,050,000 steps");
        return sources.entrySet().stream()
                .map(
                        each ->
                                DynamicTest.dynamicTest(
                                        each.getValue(),
                                        () ->
                                                assertThatThrownBy(
                                                                () ->
                                                                        ChatTemplate.ofSource(
                                                                                        each
                                                                                                .getKey(),
                                                                                        TOKENS)
                                                                                .render(
                                                                                        TWO_ANSWERS,
                                                                                        true))
                                                        .isInstanceOf(TemplateException.class)
                                                        .hasMessageStartingWith(
                                                                "chat_template.jinja: ")
                                                        .hasMessageContaining(each.getValue())));
    }

    @Test
    void whatIsWithinTheLimitsIsWritten() {
        String deep = "{{ " + "(".repeat(90) + "1" + ")".repeat(90) + " }}";
        String wide = "{{ '' " + "~ 'x' ".repeat(499) + "}}";
        String blocks = "{% if true %}".repeat(90) + "z" + "{% endif %}".repeat(90);

        assertThat(ChatTemplate.ofSource(deep + wide + blocks, TOKENS).render(TWO_ANSWERS, true))
                .isEqualTo("1" + "x".repeat(499) + "z");
    }

    @Test
    void aLongChatIsWithinTheLimits() {
        List<ChatMessage> chat = new ArrayList<>();
        for (int i = 0; i < 1_000; i++) {
            chat.add(new ChatMessage("user", "x".repeat(2_000)));
            chat.add(new ChatMessage("assistant", "y".repeat(2_000)));
        }
        ChatTemplate chatml = ChatTemplate.of("chatml", null);

        assertThat(chatml.parts(chat)).hasSize(2_000);
        assertThat(chatml.promptParts(chat)).hasSize(2_001);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '@',
            value = {
                "{% macro f() %}{% endmacro %} @ the block 'macro' is not supported",
                "{{ strftime_now('x') }} @ the function 'strftime_now' is not supported",
                "{{ messages | tojson }} @ the filter 'tojson' is not supported",
                "{{ messages[0].tools.name }} @ something that is not defined",
                "{{ messages }} @ cannot be written as text",
                "{{ raise_exception('only users') }} @ only users",
                "{% if true %} @ a block without its 'endif'",
                "{{ 'x' @ a tag without its end",
                "{{ 'x }} @ a text without its closing",
                "{{ 1 +  }} @ a tag ends where a value was expected",
                "{{ 99999999999999999999 }} @ expected a number of 64 bits",
                "{{ 'a'.replace('b') }} @ 'replace' needs what to replace",
                "{% set a = namespace(x=1) %}{% set a.x = a %}{% set b = namespace(x=1) %}{% set b.x = b %}{{ a == b }} @ values that are not in themselves",
                "{% for a, b in messages %}{% endfor %} @ expected 'in', got ','"
            })
    void whatIsNotSupportedIsRefusedAndNamed(String source, String message) {
        assertThatThrownBy(() -> ChatTemplate.ofSource(source, TOKENS).render(TWO_ANSWERS, true))
                .isInstanceOf(TemplateException.class)
                .hasMessageContaining(message);
    }
}
