package dev.penstock.systemtests.runs;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.SavedRun;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.systemtests.support.Browser;
import dev.penstock.systemtests.support.ForkedCli;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The page of the inference server in a real browser. */
@Timeout(value = 4, unit = TimeUnit.MINUTES)
class ChatPageIT {
    @TempDir private Path folder;

    @Test
    void aMessageIsAnsweredAndAnErrorIsShown() throws Exception {
        var chromium = Browser.installed();
        Assumptions.assumeTrue(
                chromium.isPresent(), "skipped: no chromium on the PATH to test the page with");
        Path run = folder.resolve("tiny-1");
        SavedRun.write(run, 1, ModelConfig.gpt2(256, 256, 8, 1, 2, true));
        try (ForkedCli server =
                        ForkedCli.startLight(List.of("serve", run.toString(), "--port", "0"));
                var browser = new Browser(chromium.get(), folder.resolve("profile"))) {
            browser.open(server.awaitOutput("serving tiny-1: (\\S+)"));
            browser.await("document.getElementById('model').textContent === 'tiny-1'");

            say(browser, "hello", 12);
            browser.await("document.querySelectorAll('.assistant').length === 1");
            browser.await("document.querySelector('.assistant').textContent.length > 3");
            browser.await("!document.getElementById('send').hidden");
            say(browser, "and now?", 100_000);
            browser.await("document.querySelectorAll('.error').length === 1");

            assertThat(browser.evaluate("document.querySelector('.user').textContent").asText())
                    .isEqualTo("hello");
            assertThat(browser.evaluate("document.querySelector('.error').textContent").asText())
                    .contains("max_tokens: expected at most");
        }
    }

    private static void say(Browser browser, String text, int tokens) throws Exception {
        browser.evaluate("document.getElementById('tokens').value = " + tokens);
        browser.evaluate("document.getElementById('text').value = '%s'".formatted(text));
        browser.evaluate("document.getElementById('send').click()");
    }
}
