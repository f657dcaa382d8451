/** A text field that filters a view: it becomes a parameter of the address on Enter, or when it is left. */
import { useState } from "preact/hooks";
import { refine, useAddress } from "./router";

export function FilterField({ name, placeholder = name }: { name: string; placeholder?: string }) {
  const { query } = useAddress();
  const [text, setText] = useState(query.get(name) ?? "");
  return (
    <form
      class="inline"
      onSubmit={(event) => {
        event.preventDefault();
        refine({ [name]: text });
      }}
    >
      <input type="search" placeholder={placeholder} aria-label={placeholder} value={text} onInput={(event) => setText(event.currentTarget.value)} onBlur={() => refine({ [name]: text })} />
    </form>
  );
}
