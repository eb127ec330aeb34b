package lakewright.spark;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** A reference to a secret: `file:PATH` or `env:NAME`. */
record SecretReference(String text) {
  SecretReference {
    if (!text.startsWith("file:") && !text.startsWith("env:")) {
      // The text may be the secret itself, so the message must not repeat it.
      throw new IllegalArgumentException("expected a reference to a secret, file:PATH or env:NAME");
    }
  }

  /** Return the secret as it is now, without surrounding white space. */
  String read() {
    String secret = text.startsWith("file:") ? ofFile() : System.getenv(text.substring("env:".length()));
    if (secret == null || secret.isBlank()) {
      throw new IllegalStateException(
          "catalog credential " + text + ": expected a variable or file that is readable and not empty");
    }
    return secret.strip();
  }

  private String ofFile() {
    try {
      return Files.readString(Path.of(text.substring("file:".length())), StandardCharsets.UTF_8);
    } catch (IOException error) {
      return null;
    }
  }
}
