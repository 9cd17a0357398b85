package dev.penstock.examples;

import dev.penstock.Model;
import dev.penstock.ModelServer;
import dev.penstock.Penstock;
import java.io.IOException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;

/** Serves a trained model. */
final class ServeExample {
    private ServeExample() {}

    static String run(Path runDirectory) throws IOException, InterruptedException {
        // @start region="example"
        try (Model model = Penstock.open(runDirectory);
                ModelServer server = model.serve(0);
                HttpClient client = HttpClient.newHttpClient()) {
            var request =
                    HttpRequest.newBuilder(server.address().resolve("v1/completions"))
                            .header("Content-Type", "application/json")
                            .POST(
                                    HttpRequest.BodyPublishers.ofString(
                                            "{\"prompt\": \"the river \", \"max_tokens\": 8}"))
                            .build();
            return client.send(request, HttpResponse.BodyHandlers.ofString()).body();
        }
        // @end
    }
}
