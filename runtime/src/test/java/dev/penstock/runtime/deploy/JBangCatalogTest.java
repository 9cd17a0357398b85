package dev.penstock.runtime.deploy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

class JBangCatalogTest {
    @Test
    void theAliasStartsThisVersionAsTheLauncherDoes() throws IOException {
        String pom = Files.readString(Path.of("../pom.xml"));

        JsonNode alias =
                JsonMapper.builder()
                        .build()
                        .readTree(Path.of("../jbang-catalog.json").toFile())
                        .at("/aliases/penstock");

        assertThat(alias.get("script-ref").asText())
                .isEqualTo("dev.penstock:penstock-runtime:" + in(pom, "version"));
        assertThatCode(() -> Class.forName(alias.get("main").asText())).doesNotThrowAnyException();
        List<String> options = new ArrayList<>();
        alias.get("java-options").forEach(option -> options.add(option.asText()));
        assertThat(String.join(" ", options).replaceAll("(--add-[a-z]+)=", "$1 "))
                .isEqualTo(in(pom, "jvm.flags"));
    }

    private static String in(String pom, String element) {
        Matcher found = Pattern.compile("<%1$s>([^<]+)</%1$s>".formatted(element)).matcher(pom);
        assertThat(found.find()).isTrue();
        return found.group(1);
    }
}
