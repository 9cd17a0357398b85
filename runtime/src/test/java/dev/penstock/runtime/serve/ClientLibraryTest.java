package dev.penstock.runtime.serve;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.langchain4j.data.message.AiMessage;
import dev.langchain4j.data.message.SystemMessage;
import dev.langchain4j.data.message.UserMessage;
import dev.langchain4j.exception.AuthenticationException;
import dev.langchain4j.exception.InvalidRequestException;
import dev.langchain4j.exception.ModelNotFoundException;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.chat.response.StreamingChatResponseHandler;
import dev.langchain4j.model.openai.OpenAiChatModel;
import dev.langchain4j.model.openai.OpenAiLanguageModel;
import dev.langchain4j.model.openai.OpenAiStreamingChatModel;
import dev.langchain4j.model.output.FinishReason;
import dev.penstock.runtime.inference.JoiningTexts;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The server through the eyes of a client library that others use: LangChain4j. */
@Timeout(120)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ClientLibraryTest {
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final String PROMPT =
            "system: Be brief.\nuser: hi\nassistant: yes?\nuser: go on\nassistant: ";
    private ServedRun served;

    @BeforeAll
    void start(@TempDir Path folder) throws IOException {
        served = ServedRun.ofLongContext(folder, new JoiningTexts.Limits(4, 8, 512));
    }

    @AfterAll
    void stop() {
        served.close();
    }

    private OpenAiChatModel.OpenAiChatModelBuilder chat() {
        return OpenAiChatModel.builder()
                .baseUrl(served.server.url() + "v1")
                .apiKey("none")
                .modelName("tiny")
                .timeout(PATIENCE)
                .maxRetries(0);
    }

    @Test
    void aConversationIsAnsweredWithWhatGenerateWrites() {
        ChatResponse answer =
                chat().temperature(0.9)
                        .topP(0.8)
                        .seed(11)
                        .maxTokens(25)
                        .build()
                        .chat(
                                SystemMessage.from("Be brief."),
                                UserMessage.from("hi"),
                                AiMessage.from("yes?"),
                                UserMessage.from("go on"));

        assertThat(answer.aiMessage().text()).isEqualTo(generated(25));
        assertThat(answer.finishReason()).isEqualTo(FinishReason.LENGTH);
        assertThat(answer.modelName()).isEqualTo("tiny");
        assertThat(answer.tokenUsage().inputTokenCount()).isEqualTo(PROMPT.length());
        assertThat(answer.tokenUsage().outputTokenCount()).isEqualTo(25);
    }

    private String generated(int tokens) {
        return served.generated(
                PROMPT, "--tokens=" + tokens, "--temperature=0.9", "--top-p=0.8", "--seed=11");
    }

    @Test
    void anAnswerArrivesAsItGrows() {
        var heard = new StringBuilder();
        var complete = new CompletableFuture<ChatResponse>();
        OpenAiStreamingChatModel model =
                OpenAiStreamingChatModel.builder()
                        .baseUrl(served.server.url() + "v1")
                        .apiKey("none")
                        .modelName("tiny")
                        .timeout(PATIENCE)
                        .temperature(0.9)
                        .topP(0.8)
                        .seed(11)
                        .maxCompletionTokens(40)
                        .build();

        model.chat(
                List.of(
                        SystemMessage.from("Be brief."),
                        UserMessage.from("hi"),
                        AiMessage.from("yes?"),
                        UserMessage.from("go on")),
                new StreamingChatResponseHandler() {
                    @Override
                    public void onPartialResponse(String part) {
                        heard.append(part);
                    }

                    @Override
                    public void onCompleteResponse(ChatResponse response) {
                        complete.complete(response);
                    }

                    @Override
                    public void onError(Throwable error) {
                        complete.completeExceptionally(error);
                    }
                });

        ChatResponse answer = complete.orTimeout(60, TimeUnit.SECONDS).join();
        assertThat(answer.aiMessage().text()).isEqualTo(generated(40));
        assertThat(heard).hasToString(generated(40));
        assertThat(answer.tokenUsage().outputTokenCount()).isEqualTo(40);
    }

    @Test
    void aCompletionIsWhatGenerateWrites() {
        var answer =
                OpenAiLanguageModel.builder()
                        .baseUrl(served.server.url() + "v1")
                        .apiKey("none")
                        .modelName("tiny")
                        .temperature(0.0)
                        .timeout(PATIENCE)
                        .build()
                        .generate("abc");

        assertThat(answer.content())
                .isEqualTo(served.generated("abc", "--tokens=16", "--temperature=0"));
        assertThat(answer.finishReason()).isEqualTo(FinishReason.LENGTH);
    }

    @Test
    void errorsAreUnderstood(@TempDir Path other) throws IOException {
        assertThatThrownBy(() -> chat().modelName("gpt-5").build().chat("hi"))
                .isInstanceOf(ModelNotFoundException.class)
                .hasMessageContaining("model: expected tiny, got gpt-5");
        assertThatThrownBy(() -> chat().maxTokens(900).build().chat("hi"))
                .isInstanceOf(InvalidRequestException.class)
                .hasMessageContaining("context_length_exceeded");
        try (ServedRun locked = ServedRun.withKey(other, "correct-horse")) {
            assertThatThrownBy(() -> chat().baseUrl(locked.server.url() + "v1").build().chat("hi"))
                    .isInstanceOf(AuthenticationException.class);
        }
    }
}
