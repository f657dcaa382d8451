/** Placeholder until the history is served. */
export function TimeView() {
  return (
    <section class="panel main">
      <h1>Time</h1>
    </section>
  );
}
